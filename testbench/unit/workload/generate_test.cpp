// Generated traces: they pass the check, amount to what was asked for, and are played on an idealised machine with
// random timing, where no put may be refused, every buffer must complete and every rank must end.
#include "workload/generate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "ideal_machine.hpp"
#include "workload/trace.hpp"

namespace rvma {
namespace {

using testing::HasSubstr;

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
      {"zzzzzzzz", {}, "unknown pattern", "pingpong, stream, incast, alltoall, allreduce"},
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
