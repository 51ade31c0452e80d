#include "base/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <sstream>

namespace rvma {
namespace {

TEST(ErrorText, PositionsAndHints) {
  EXPECT_EQ((Error{{"/a/t.trace", 3, 7}, "unknown name 'w'", "did you mean 'v'?"}.to_string()),
            "/a/t.trace:3:7: error: unknown name 'w'; did you mean 'v'?");
  EXPECT_EQ((Error{{"<stdin>", 1, 1}, "empty", ""}.to_string()), "<stdin>:1:1: error: empty");
  EXPECT_EQ((Error{{"rvma", 0, 0}, "--set nic.mtu: '5x' has no unit", "expected a size"}.to_string()),
            "rvma: error: --set nic.mtu: '5x' has no unit; expected a size");
}

TEST(ErrorListText, ShowsTwentyThenCounts) {
  for (const std::uint64_t errors : {1, 20, 21, 25}) {
    ErrorList list;
    EXPECT_TRUE(list.empty());
    for (std::uint64_t i = 1; i <= errors; ++i) list.add(Position{"f", i, 1}, "bad");
    EXPECT_EQ(list.count(), errors);
    std::ostringstream out;
    list.print(out);
    const std::string text = out.str();
    EXPECT_NE(text.find("f:1:1: error: bad\n"), std::string::npos);
    EXPECT_EQ(text.find("f:20:1: error: bad\n") != std::string::npos, errors >= 20);
    EXPECT_EQ(text.find("f:21:1:"), std::string::npos);
    const std::string rest = errors <= 20 ? "" : errors == 21 ? "... and 1 more error\n" : "... and 5 more errors\n";
    EXPECT_EQ(text.substr(std::min(text.find("..."), text.size())), rest);
  }
}

TEST(Quoted, EscapesAndCuts) {
  EXPECT_EQ(quoted(""), "''");
  EXPECT_EQ(quoted("mtu"), "'mtu'");
  EXPECT_EQ(quoted("a\n\t\r\x01\x7f"), "'a\\n\\t\\r\\x01\\x7f'");
  EXPECT_EQ(quoted("it's\\"), "'it\\'s\\\\'");
  EXPECT_EQ(quoted("gr\xc3\xbc\xc3\x9f"), "'gr\xc3\xbc\xc3\x9f'");
  EXPECT_EQ(quoted("\xff\xc3"), "'\\xff\\xc3'");
  EXPECT_EQ(quoted("\xc2\x9b"), "'\\xc2\\x9b'") << "a control character of the second kind would reach the terminal";
  const std::string fits(64, 'x');
  EXPECT_EQ(quoted(fits), "'" + fits + "'");
  EXPECT_EQ(quoted(fits + "y"), "'" + std::string(61, 'x') + "...'");
  EXPECT_EQ(quoted(std::string(1000, '\0')).size(), 2 + 15 * 4 + 3);
  // A character is never cut in two.
  std::string wide;
  for (int i = 0; i < 65; ++i) wide += "\xe2\x82\xac";
  EXPECT_EQ(quoted(wide), "'" + wide.substr(0, std::size_t{61} * 3) + "...'");
}

TEST(NearestName, OnlyLikelySlips) {
  const std::vector<std::string> known{"clock", "datapath", "mtu", "nack", "history"};
  EXPECT_EQ(nearest_name("clok", known), "clock");
  EXPECT_EQ(nearest_name("clokc", known), "clock");
  EXPECT_EQ(nearest_name("MTU", known), "mtu");
  EXPECT_EQ(nearest_name("mtus", known), "mtu");
  EXPECT_EQ(nearest_name("data_path", known), "datapath");
  EXPECT_EQ(nearest_name("frequency", known), "");
  EXPECT_EQ(nearest_name("", known), "");
  EXPECT_EQ(nearest_name("x", {"y"}), "") << "nothing in common is no slip";
  EXPECT_EQ(nearest_name(std::string(1'000'000, 'm'), known), "");
}

TEST(AssertionDeathTest, ExitsWithThreeAfterFlushing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  RVMA_ASSERT(1 + 1 == 2, "arithmetic");
  EXPECT_EXIT(RVMA_ASSERT(1 + 1 == 3, "the sum is off"), testing::ExitedWithCode(3),
              "rvma: internal error: .*error_test.cpp:[0-9]+: the sum is off .broken: 1 . 1 == 3.");
  EXPECT_EXIT(
      {
        std::clog << "what came before\n";
        RVMA_ASSERT(false, "then this");
      },
      testing::ExitedWithCode(3), "what came before\n.*then this");
}

TEST(ResultDeathTest, ValueOfAnErrorIsAnAssertion) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Result<int> bad = Error{{"f", 1, 2}, "no", ""};
  EXPECT_EXIT(static_cast<void>(bad.value()), testing::ExitedWithCode(3), "f:1:2: error: no");
}

}  // namespace
}  // namespace rvma
