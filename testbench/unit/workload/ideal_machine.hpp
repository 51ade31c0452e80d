/// \file
/// Generated traces on an idealised machine with random timing: ranks, buckets and thresholds without any hardware.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "workload/generate.hpp"
#include "workload/trace.hpp"

namespace rvma {

inline std::string generated(const std::string& pattern, const GeneratorArguments& arguments) {
  std::ostringstream out;
  const auto error = rvma::generate(pattern, arguments, out);
  EXPECT_FALSE(error) << error->to_string();
  return out.str();
}

inline std::unique_ptr<Trace> checked(const std::string& text) {
  ErrorList errors;
  auto trace = Trace::from_text(text, "generated", errors);
  std::ostringstream out;
  errors.print(out);
  EXPECT_NE(trace, nullptr) << out.str();
  return trace;
}

/// What a pattern promises.
struct Promise {
  bool never_refused = true;  ///< each message finds a buffer; otherwise it may have to try again
  bool exact_epochs = true;   ///< no epoch overshoots, and no buffer is left when its window is closed
  /// A rank sends no message to a mailbox before the one before it has been counted, so that none overtakes another.
  bool in_order = false;
};

/// Ranks and messages proceed in random order.
class IdealMachine {
 public:
  IdealMachine(const Trace& trace, std::uint64_t seed, Promise promise = {})
      : trace_(trace), random_(seed), promise_(promise), ranks_(trace.ranks()) {
    for (std::uint32_t r = 0; r < trace.ranks(); ++r) {
      ranks_[r].cursor = trace.cursor(RankId{r});
      ranks_[r].next = ranks_[r].cursor->next();
    }
  }

  void run() {
    // Now and then one rank stands still for a while, so that the others get as far ahead of it as they can.
    std::uint64_t frozen = ranks_.size();
    for (std::uint64_t turn = 0;; ++turn) {
      if (turn % 64 == 0) frozen = random_.below(2 * ranks_.size());
      bool progress = false;
      const std::uint64_t choice = random_.below(ranks_.size() + 1);
      if (choice < ranks_.size() && choice != frozen) {
        for (std::uint64_t steps = 1 + random_.below(3); steps > 0; --steps)
          progress |= step(static_cast<std::uint32_t>(choice));
      } else if (!in_flight_.empty()) {
        deliver();
        progress = true;
      }
      if (progress || turn % 256 != 0) continue;
      // Perhaps nobody can go on.
      for (std::uint32_t r = 0; r < ranks_.size(); ++r) progress |= step(r);
      if (!progress && in_flight_.empty()) break;
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) EXPECT_EQ(ranks_[r].next, nullptr) << "rank " << r << " hangs";
    EXPECT_TRUE(in_flight_.empty());
    EXPECT_EQ(posted_, completed_ + returned_) << "unfilled buffers";
  }

  std::uint64_t delivered() const { return delivered_; }
  std::uint64_t delivered_bytes() const { return delivered_bytes_; }
  std::uint64_t completed() const { return completed_; }
  std::uint64_t returned() const { return returned_; }
  std::uint64_t retried() const { return retried_; }
  std::size_t most_posted() const { return most_posted_; }

 private:
  struct Buffer {
    std::string name;
    std::uint64_t size;
  };
  struct Window {
    Operation init;
    std::deque<Buffer> bucket;
    std::uint64_t counted = 0;
    std::uint64_t tail = 0;
  };
  struct Rank {
    std::unique_ptr<Trace::Cursor> cursor;
    const Operation* next = nullptr;
    bool at_barrier = false;
    std::map<std::string, std::uint64_t> mailbox_of;  ///< by window name
    std::map<std::uint64_t, Window> windows;          ///< by mailbox
    std::set<std::string> done;                       ///< buffers and puts
    std::uint64_t puts_open = 0;
    std::size_t posted = 0;
  };
  struct Message {
    std::uint32_t from;
    Operation put;
    std::string name;
  };

  bool step(std::uint32_t number) {
    Rank& rank = ranks_[number];
    if (rank.next == nullptr) return false;
    const Operation& op = *rank.next;
    const auto spell = [&](const NameRef& name) { return trace_.spelling(RankId{number}, name); };
    switch (op.kind) {
      case OperationKind::init_window: {
        EXPECT_EQ(rank.windows.count(op.mailbox.value()), 0U);
        rank.mailbox_of[spell(op.name)] = op.mailbox.value();
        rank.windows[op.mailbox.value()].init = op;
        break;
      }
      case OperationKind::post_buffer: {
        Window& window = rank.windows.at(rank.mailbox_of.at(spell(op.operands[0])));
        window.bucket.push_back({op.has_name ? spell(op.name) : "", op.size});
        ++posted_;
        most_posted_ = std::max(most_posted_, ++rank.posted);
        break;
      }
      case OperationKind::put: {
        EXPECT_LT(op.rank.value(), ranks_.size());
        std::uint64_t& open = open_[{number, op.rank.value(), op.mailbox.value()}];
        if (promise_.in_order) {
          EXPECT_EQ(open, 0U) << "two at a time from " << number;
        }
        ++open;
        in_flight_.push_back({number, op, op.has_name ? spell(op.name) : ""});
        ++rank.puts_open;
        break;
      }
      case OperationKind::wait:
        for (const NameRef& name : op.operands) {
          if (rank.done.count(spell(name)) == 0) return false;
        }
        break;
      case OperationKind::wait_all:
        if (rank.puts_open > 0) return false;
        break;
      case OperationKind::inc_epoch: {
        const std::uint64_t mailbox = rank.mailbox_of.at(spell(op.operands[0]));
        EXPECT_FALSE(rank.windows.at(mailbox).bucket.empty()) << "no epoch to end";
        complete(rank, rank.windows.at(mailbox));
        break;
      }
      case OperationKind::close_window: {
        const auto found = rank.windows.find(rank.mailbox_of.at(spell(op.operands[0])));
        EXPECT_TRUE(!promise_.exact_epochs || found->second.bucket.empty()) << "closed with buffers";
        for (const Buffer& buffer : found->second.bucket) {
          rank.done.insert(buffer.name);
          --rank.posted;
          ++returned_;
        }
        rank.windows.erase(found);
        break;
      }
      case OperationKind::barrier:
        rank.at_barrier = true;
        if (!std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.at_barrier; })) return false;
        for (Rank& each : ranks_) {
          each.at_barrier = false;
          each.next = each.cursor->next();
        }
        return true;
      default:
        break;
    }
    rank.next = rank.cursor->next();
    return true;
  }

  /// Any message in flight may be the next to bind.
  void deliver() {
    std::swap(in_flight_[random_.below(in_flight_.size())], in_flight_.back());
    const Message message = in_flight_.back();
    in_flight_.pop_back();
    const Operation& put = message.put;
    Rank& rank = ranks_[put.rank.value()];
    const auto found = rank.windows.find(put.mailbox.value());
    ASSERT_NE(found, rank.windows.end()) << "no_mailbox";
    Window& window = found->second;
    ASSERT_TRUE(window.init.key == 0 || window.init.key == put.key) << "bad_key";
    if (!promise_.never_refused && window.bucket.empty()) {
      constexpr std::uint64_t kMostRetries = 1'000'000;
      if (++retried_ < kMostRetries) return in_flight_.push_back(message);
      ADD_FAILURE() << "a message never finds a buffer";
      in_flight_.clear();  // nobody can go on
      return;
    }
    ASSERT_FALSE(window.bucket.empty()) << "no_buffer";
    const bool managed = window.init.placement == Placement::managed;
    const std::uint64_t begin = managed ? window.tail : put.offset;
    ASSERT_LE(begin + put.size, window.bucket.front().size) << "bounds";
    window.tail += put.size;
    window.counted += window.init.threshold_type == ThresholdType::ops ? 1 : put.size;
    ++delivered_;
    delivered_bytes_ += put.size;
    --open_[{message.from, put.rank.value(), put.mailbox.value()}];
    --ranks_[message.from].puts_open;
    ranks_[message.from].done.insert(message.name);
    if (window.counted < window.init.threshold) return;
    if (promise_.exact_epochs) {
      EXPECT_EQ(window.counted, window.init.threshold) << "an epoch overshoots";
    }
    complete(rank, window);
  }

  void complete(Rank& rank, Window& window) {
    rank.done.insert(window.bucket.front().name);
    window.bucket.pop_front();
    window.counted = 0;
    window.tail = 0;
    --rank.posted;
    ++completed_;
  }

  const Trace& trace_;
  Random random_;
  Promise promise_;
  std::vector<Rank> ranks_;
  std::vector<Message> in_flight_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::uint64_t> open_;  ///< by sender and mailbox
  std::uint64_t posted_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t returned_ = 0;
  std::uint64_t retried_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t delivered_bytes_ = 0;
  std::size_t most_posted_ = 0;
};

struct Played {
  std::uint64_t messages;
  std::uint64_t bytes;
  std::uint64_t buffers;
  std::uint64_t returned;   ///< buffers that came back unused
  std::uint64_t retried;    ///< deliveries that found no buffer
  std::uint64_t text_size;  ///< bytes
};

/// Plays the pattern with several timings; all must come to the same.
inline Played play(const std::string& pattern, const GeneratorArguments& arguments, Promise promise = {}) {
  const std::string text = generated(pattern, arguments);
  const auto trace = checked(text);
  Played outcome{};
  if (trace == nullptr) return outcome;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("timing seed " + std::to_string(seed) + "\n" + text.substr(0, 4000));
    IdealMachine machine(*trace, seed, promise);
    machine.run();
    EXPECT_EQ(machine.delivered(), trace->total_puts());
    EXPECT_LE(machine.most_posted(), 4096U);
    outcome = {machine.delivered(), machine.delivered_bytes(), machine.completed(),
               machine.returned(),  machine.retried(),         text.size()};
  }
  return outcome;
}

}  // namespace rvma
