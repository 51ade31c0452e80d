/// \file
/// The senders' side, as far as their packets show it: generations, message ids, sequence numbers, oldest open id.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "scenario.hpp"

namespace rvma::check {

class Senders {
 public:
  explicit Senders(const std::vector<MessageSpec>& messages) : messages_(&messages), numbers_(messages.size()) {
    for (unsigned sender = 0; sender < kSenders; ++sender) number(sender, std::vector<bool>(messages.size(), true));
  }

  struct Number {
    std::uint32_t generation = 0;  ///< 0: never sent
    std::uint32_t id = 0;
    std::uint32_t first_sequence = 0;
  };

  const MessageSpec& spec(unsigned message) const { return (*messages_)[message]; }
  const Number& number_of(unsigned message) const { return numbers_[message]; }
  std::uint32_t generation(unsigned sender) const { return generation_.at(sender); }
  bool is_current(unsigned message) const {
    return numbers_[message].generation == generation_.at(spec(message).sender);
  }

  Arrival arrival(unsigned message, unsigned packet) const {
    const Number& own = numbers_[message];
    const unsigned sender = spec(message).sender;
    // A packet that was sent before its sender heard of anything names an older id.
    const std::uint32_t oldest = is_current(message) ? oldest_.at(sender) : given_up_at_.at(sender);
    return {sender, own.generation, own.first_sequence + packet, own.id, std::min(oldest, own.id)};
  }

  /// The sender knows that all messages below `oldest` have ended.
  void hear(unsigned sender, std::uint32_t oldest) { oldest_.at(sender) = std::max(oldest_.at(sender), oldest); }
  std::uint32_t oldest(unsigned sender) const { return oldest_.at(sender); }

  /// Gives up: what has not begun is numbered anew.
  void start_generation(unsigned sender, const std::vector<bool>& unbegun) { number(sender, unbegun); }

  void pack(std::string& out) const {
    for (const std::uint32_t oldest : oldest_) out.push_back(static_cast<char>(oldest));
    for (const std::uint32_t oldest : given_up_at_) out.push_back(static_cast<char>(oldest));
    for (const std::uint32_t generation : generation_) out.push_back(static_cast<char>(generation));
    for (const Number& own : numbers_) out.push_back(static_cast<char>(own.generation));
  }

 private:
  void number(unsigned sender, const std::vector<bool>& which) {
    ++generation_.at(sender);
    given_up_at_.at(sender) = oldest_.at(sender);
    oldest_.at(sender) = 0;
    std::uint32_t id = 0;
    std::uint32_t sequence = 0;
    for (unsigned i = 0; i < numbers_.size(); ++i) {
      if (spec(i).sender != sender || !which[i]) continue;
      numbers_[i] = {generation_.at(sender), id++, sequence};
      sequence += spec(i).packets();
    }
  }

  const std::vector<MessageSpec>* messages_;
  std::vector<Number> numbers_;
  std::array<std::uint32_t, kSenders> oldest_{};       ///< open id
  std::array<std::uint32_t, kSenders> given_up_at_{};  ///< oldest open id of the generation before
  std::array<std::uint32_t, kSenders> generation_{};
};

}  // namespace rvma::check
