/// \file
/// What the receive path has to do, written from the specification (semantics.md) sentence by sentence and from nothing
/// else: lists and flags of everything, nothing computed ahead. Slow, small, a value that can be copied.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "scenario.hpp"
#include "senders.hpp"

namespace rvma::check {

class Reference {
 public:
  /// `scenario` outlives it, and so do `messages`: those of the scenario, and more that a probe may send.
  Reference(const Scenario& scenario, const std::vector<MessageSpec>& messages);

  Observed apply(const Action& action);
  Snapshot snapshot() const;

  const Senders& senders() const { return senders_; }
  bool has_arrived(unsigned message, unsigned packet) const { return packets_[message][packet] != Where::not_here; }
  bool is_on_the_way(unsigned message, unsigned packet) const { return packets_[message][packet] == Where::on_the_way; }
  bool is_disposed(unsigned message, unsigned packet) const { return packets_[message][packet] == Where::disposed; }
  bool may_finish_rewind() const { return state_ == State::rewinding && !anything_on_the_way(); }
  bool is_open() const { return state_ == State::open; }
  bool is_closing() const { return state_ == State::closing; }
  std::uint64_t remembered() const { return history_.size(); }
  /// What the sender's next acknowledgement will let it close: everything below.
  std::uint32_t known_ended(unsigned sender) const;
  /// Messages that are bound and unfinished.
  unsigned bound() const;
  void pack(std::string& out) const;

 private:
  enum class Where : std::uint8_t { not_here, on_the_way, disposed };
  enum class MessageState : std::uint8_t { unseen, bound, refused, done, cut_off };
  enum class State : std::uint8_t { open, rewinding, closing, closed };

  struct Message {
    MessageState state = MessageState::unseen;
    Reason refusal = Reason::none;
    int buffer = kNowhere;
    std::uint64_t place = 0;      ///< of its first byte in the buffer
    std::uint64_t delivered = 0;  ///< bytes
  };
  struct Buffer {
    std::uint64_t reserved = 0;   ///< bytes or ops
    std::uint64_t tail = 0;       ///< bytes
    std::uint64_t delivered = 0;  ///< bytes
    bool is_retired = false;
    bool is_broken = false;  ///< retired with a message cut off
    std::uint64_t epoch = 0;
  };

  Observed arrive(unsigned message, unsigned packet);
  Observed land(unsigned message, unsigned packet);
  void bind(unsigned message, unsigned packet, Observed& seen);
  Reason find_place(unsigned message, int& buffer, std::uint64_t& place, bool& retires_active) const;
  Observed inc_epoch();
  Observed rewind(std::uint64_t n);
  Observed finish_rewind();
  Observed close();
  void cut_off_sender(unsigned sender);

  int active() const;
  int after_active() const;
  void retire(int buffer);
  void settle(Observed& seen);
  bool is_waited_for(int buffer) const;
  bool is_anything_unfinished() const;
  bool anything_on_the_way() const;
  bool has_on_the_way(unsigned message) const;
  unsigned binding_entries() const;

  const Scenario* scenario_;
  const std::vector<MessageSpec>* specs_;
  Senders senders_;
  std::vector<Message> messages_;
  std::vector<std::array<Where, kMostPackets>> packets_;
  std::array<std::uint32_t, kSenders> closed_below_{};  ///< ids that the sender has closed, as its packets say
  std::array<std::uint32_t, kSenders> heard_generation_{};
  std::array<std::uint64_t, kMostBuffers> sizes_{};
  std::array<Buffer, kMostBuffers> buffers_;
  std::array<std::uint64_t, kMostBuffers> word_{};
  std::vector<int> bucket_;  ///< retired and uncompleted ones, the active one, unused ones
  std::vector<Epoch3> history_;
  std::uint64_t next_epoch_ = 0;  ///< of the active buffer
  std::uint64_t completed_ = 0;
  State state_ = State::open;
};

}  // namespace rvma::check
