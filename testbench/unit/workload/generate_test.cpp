// Generated traces: they pass the check, amount to what was asked for, and are played on an idealised machine with
// random timing, where no put may be refused, every buffer must complete and every rank must end.
#include "workload/generate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "workload/trace.hpp"

namespace rvma {
namespace {

using testing::HasSubstr;

std::string generated(const std::string& pattern, const GeneratorArguments& arguments) {
  std::ostringstream out;
  const auto error = rvma::generate(pattern, arguments, out);
  EXPECT_FALSE(error) << error->to_string();
  return out.str();
}

std::unique_ptr<Trace> checked(const std::string& text) {
  ErrorList errors;
  auto trace = Trace::from_text(text, "generated", errors);
  std::ostringstream out;
  errors.print(out);
  EXPECT_NE(trace, nullptr) << out.str();
  return trace;
}

/// Ranks, buckets and thresholds without any hardware. Ranks and messages proceed in random order.
class IdealMachine {
 public:
  IdealMachine(const Trace& trace, std::uint64_t seed) : trace_(trace), random_(seed), ranks_(trace.ranks()) {
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
    EXPECT_EQ(posted_, completed_) << "unfilled buffers";
  }

  std::uint64_t delivered() const { return delivered_; }
  std::uint64_t delivered_bytes() const { return delivered_bytes_; }
  std::uint64_t completed() const { return completed_; }
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
      case OperationKind::put:
        EXPECT_LT(op.rank.value(), ranks_.size());
        in_flight_.push_back({number, op, op.has_name ? spell(op.name) : ""});
        ++rank.puts_open;
        break;
      case OperationKind::wait:
        for (const NameRef& name : op.operands) {
          if (rank.done.count(spell(name)) == 0) return false;
        }
        break;
      case OperationKind::wait_all:
        if (rank.puts_open > 0) return false;
        break;
      case OperationKind::close_window: {
        const auto found = rank.windows.find(rank.mailbox_of.at(spell(op.operands[0])));
        EXPECT_TRUE(found->second.bucket.empty()) << "closed with buffers";
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
    ASSERT_FALSE(window.bucket.empty()) << "no_buffer";
    const bool managed = window.init.placement == Placement::managed;
    const std::uint64_t begin = managed ? window.tail : put.offset;
    ASSERT_LE(begin + put.size, window.bucket.front().size) << "bounds";
    window.tail += put.size;
    window.counted += window.init.threshold_type == ThresholdType::ops ? 1 : put.size;
    ++delivered_;
    delivered_bytes_ += put.size;
    --ranks_[message.from].puts_open;
    ranks_[message.from].done.insert(message.name);
    if (window.counted < window.init.threshold) return;
    EXPECT_EQ(window.counted, window.init.threshold) << "an epoch overshoots";
    rank.done.insert(window.bucket.front().name);
    window.bucket.pop_front();
    window.counted = 0;
    window.tail = 0;
    --rank.posted;
    ++completed_;
  }

  const Trace& trace_;
  Random random_;
  std::vector<Rank> ranks_;
  std::vector<Message> in_flight_;
  std::uint64_t posted_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t delivered_bytes_ = 0;
  std::size_t most_posted_ = 0;
};

struct Played {
  std::uint64_t messages;
  std::uint64_t bytes;
  std::uint64_t buffers;
};

/// Plays the pattern with several timings; all must come to the same.
Played play(const std::string& pattern, const GeneratorArguments& arguments) {
  const std::string text = generated(pattern, arguments);
  const auto trace = checked(text);
  Played outcome{};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("timing seed " + std::to_string(seed) + "\n" + text.substr(0, 4000));
    IdealMachine machine(*trace, seed);
    machine.run();
    EXPECT_EQ(machine.delivered(), trace->total_puts());
    EXPECT_LE(machine.most_posted(), 4096U);
    outcome = {machine.delivered(), machine.delivered_bytes(), machine.completed()};
  }
  return outcome;
}

TEST(Generate, PingpongGoesToAndFro) {
  for (const std::string iterations : {"1", "2", "17"}) {
    for (const std::string how : {"mwait", "poll", "interrupt"}) {
      const std::uint64_t n = std::stoull(iterations);
      const Played outcome = play("pingpong", {{"iterations", iterations}, {"size", "100"}, {"how", how}});
      EXPECT_EQ(outcome.messages, 2 * n);
      EXPECT_EQ(outcome.bytes, 200 * n);
      EXPECT_EQ(outcome.buffers, 2 * n);
    }
  }
  EXPECT_EQ(play("pingpong", {{"size", "0"}, {"iterations", "3"}}).messages, 6U);
  EXPECT_LT(generated("pingpong", {{"iterations", "1000000000"}}).size(), 1000U);
}

TEST(Generate, PingpongWaitsAsAsked) {
  EXPECT_THAT(generated("pingpong", {{"how", "poll"}}), HasSubstr("wait pong how=poll"));
  EXPECT_THAT(generated("pingpong", {}), testing::Not(HasSubstr("how=")));
}

TEST(Generate, StreamOfEveryLengthIsExact) {
  for (std::uint64_t count = 1; count <= 25; ++count) {
    for (const std::uint64_t per_buffer : {1, 2, 3, 5, 100}) {
      SCOPED_TRACE(std::to_string(count) + " by " + std::to_string(per_buffer));
      const Played outcome = play(
          "stream", {{"count", std::to_string(count)}, {"per-buffer", std::to_string(per_buffer)}, {"size", "96"}});
      EXPECT_EQ(outcome.messages, count);
      EXPECT_EQ(outcome.bytes, 96 * count);
      EXPECT_EQ(outcome.buffers, (count + per_buffer - 1) / per_buffer);
    }
  }
  EXPECT_EQ(play("stream", {{"count", "7"}, {"size", "0"}, {"per-buffer", "3"}}).messages, 7U);
}

TEST(Generate, StreamDefaultsToBuffersOf256Kibibytes) {
  const std::string text = generated("stream", {});
  EXPECT_THAT(text, HasSubstr("threshold=256KiB"));
  EXPECT_EQ(checked(text)->total_puts(), 1000U);
  EXPECT_THAT(generated("stream", {{"size", "3MiB"}, {"count", "5"}}), HasSubstr("threshold=3MiB"));
}

TEST(Generate, StreamOfTenMillionIsAFewLines) {
  const std::string text = generated("stream", {{"size", "4KiB"}, {"count", "10000000"}});
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 50);
  EXPECT_EQ(checked(text)->total_puts(), 10'000'000U);
}

TEST(Generate, IncastReachesOneRank) {
  for (const std::string ranks : {"2", "3", "8"}) {
    for (const bool shared : {false, true}) {
      for (const std::string per_buffer : {"1", "4", "50"}) {
        SCOPED_TRACE(ranks + " ranks, " + per_buffer + " a buffer");
        GeneratorArguments arguments{{"ranks", ranks}, {"count", "21"}, {"size", "64"}, {"per-buffer", per_buffer}};
        if (shared) arguments["shared"] = "";
        const std::uint64_t senders = std::stoull(ranks) - 1;
        const std::uint64_t batches = (21 + std::stoull(per_buffer) - 1) / std::stoull(per_buffer);
        const Played outcome = play("incast", arguments);
        EXPECT_EQ(outcome.messages, 21 * senders);
        EXPECT_EQ(outcome.bytes, 64 * 21 * senders);
        EXPECT_EQ(outcome.buffers, batches * (shared ? 1 : senders));
      }
    }
  }
}

TEST(Generate, RandomIsPlayableWhateverTheSeed) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("generator seed " + std::to_string(seed));
    const std::string size = seed % 5 == 0 ? "1" : "10000";
    const std::uint64_t ranks = 1 + seed % 7;
    const Played outcome = play(
        "random", {{"seed", std::to_string(seed)}, {"ranks", std::to_string(ranks)}, {"count", "70"}, {"size", size}});
    EXPECT_EQ(outcome.messages, 70 * ranks);
  }
  EXPECT_EQ(play("random", {{"size", "0"}, {"count", "10"}}).bytes, 0U);
}

TEST(Generate, RandomUsesAllThatItShould) {
  const std::string text = generated("random", {{"count", "200"}});
  for (const char* part : {"placement=managed", " key=", "op\n", " offset=", "close_window", "how=poll"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Generate, SameSeedSameBytes) {
  EXPECT_EQ(generated("random", {{"seed", "7"}}), generated("random", {{"seed", "7"}}));
  EXPECT_NE(generated("random", {{"seed", "7"}}), generated("random", {{"seed", "8"}}));
}

TEST(Generate, DefaultsOfEveryPatternPassTheCheck) {
  for (const GeneratorPattern& pattern : generator_patterns()) {
    SCOPED_TRACE(pattern.name);
    EXPECT_FALSE(pattern.meaning.empty());
    EXPECT_NE(checked(generated(pattern.name, {})), nullptr);
    for (const GeneratorOption& option : pattern.options) {
      EXPECT_FALSE(option.meaning.empty());
      if (option.type == GeneratorOptionType::flag) continue;
      // Each declared option is read: nonsense is refused in its name.
      std::ostringstream out;
      const auto error = rvma::generate(pattern.name, {{option.name, "nonsense"}}, out);
      ASSERT_TRUE(error);
      EXPECT_THAT(error->what, testing::StartsWith("--" + option.name + ": "));
      EXPECT_TRUE(out.str().empty());
    }
  }
}

TEST(Generate, RefusesWhatItCannotDo) {
  const struct {
    const char* pattern;
    GeneratorArguments arguments;
    const char* says;
    const char* hint;
  } cases[] = {
      {"pingpng", {}, "gen: unknown pattern 'pingpng'", "did you mean 'pingpong'?"},
      {"zzzzzzzz", {}, "unknown pattern", "pingpong, stream, incast, random"},
      {"stream", {{"sise", "4"}}, "--sise: unknown option of 'stream'", "did you mean '--size'?"},
      {"stream", {{"size", "4XB"}}, "--size: '4XB'", "expected a size"},
      {"stream", {{"size", "2GiB"}}, "--size: '2GiB' is too large", "at most 1GiB"},
      {"stream", {{"count", "0"}}, "--count: '0' is too small", "at least 1"},
      {"stream", {{"count", "-1"}}, "--count: '-1' is negative", ""},
      {"stream", {{"per-buffer", "0"}}, "--per-buffer: '0' is too small", "at least 1"},
      {"stream", {{"size", "1GiB"}, {"per-buffer", "1000000"}}, "--per-buffer: a buffer would be too large", "1024"},
      {"incast", {{"ranks", "1"}}, "--ranks: '1' is too small", "at least 2"},
      {"random", {{"ranks", "2000000"}}, "--ranks: ", "at most 1048576"},
      {"pingpong", {{"how", "spin"}}, "--how: ", "mwait"},
  };
  for (const auto& bad : cases) {
    SCOPED_TRACE(bad.says);
    std::ostringstream out;
    const auto error = rvma::generate(bad.pattern, bad.arguments, out);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->position.source, "rvma");
    EXPECT_EQ(error->position.line, 0U);
    EXPECT_THAT(error->what, HasSubstr(bad.says));
    EXPECT_THAT(error->expected, HasSubstr(bad.hint));
    EXPECT_TRUE(out.str().empty());
  }
}

TEST(Generate, SaysWhenTheOutputCannotBeWritten) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_TRUE(rvma::generate("stream", {}, out));
}

}  // namespace
}  // namespace rvma
