// What a broken invariant leaves behind.
#include "base/last_words.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace rvma {
namespace {

TEST(LastWordsDeathTest, AreSpokenOnceBehindTheMessage) {
  EXPECT_EXIT(
      {
        const LastWords words([](const std::string& why) {
          std::fprintf(stderr, "last words: %s", why.c_str());
          RVMA_ASSERT(false, "a failure within is final");
        });
        RVMA_ASSERT(1 == 2, "the sky fell");
      },
      testing::ExitedWithCode(3), "the sky fell.*\n.*last words: .*the sky fell(.|\n)*a failure within");
}

TEST(LastWordsDeathTest, OfNobodyAreNotSpoken) {
  EXPECT_EXIT(
      {
        {
          const LastWords words([](const std::string&) { std::fputs("last words", stderr); });
        }
        RVMA_ASSERT(1 == 2, "the sky fell");
      },
      testing::ExitedWithCode(3), "the sky fell[^\n]*\n$");
}

TEST(LastWordsDeathTest, ThereIsOneAtATime) {
  const LastWords words([](const std::string&) {});
  EXPECT_EXIT(const LastWords others([](const std::string&) {}), testing::ExitedWithCode(3), "two last words");
}

}  // namespace
}  // namespace rvma
