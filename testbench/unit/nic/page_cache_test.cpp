#include "nic/page_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <utility>

#include "base/random.hpp"

namespace rvma {
namespace {

PageCache::Line line_of(std::uint64_t first) {
  PageCache::Line line;
  for (std::size_t i = 0; i < line.size(); ++i) line[i] = PhysicalAddress{first + i};
  return line;
}

TEST(PageCache, HoldsWholeLines) {
  EXPECT_EQ(PageCache{8192}.most_lines(), 1024U);
  EXPECT_EQ(PageCache{23}.most_lines(), 2U);
  EXPECT_EQ(PageCache{1}.most_lines(), 1U);
}

TEST(PageCache, FindsWhatWasInserted) {
  PageCache cache{16};
  EXPECT_EQ(cache.find({1, 0}), nullptr);
  cache.insert({1, 0}, line_of(100));
  cache.insert({1, 1}, line_of(200));
  ASSERT_NE(cache.find({1, 0}), nullptr);
  EXPECT_EQ((*cache.find({1, 0}))[7], PhysicalAddress{107});
  EXPECT_EQ((*cache.find({1, 1}))[0], PhysicalAddress{200});
}

TEST(PageCache, KeepsPostingsApart) {
  PageCache cache{64};
  cache.insert({1, 0}, line_of(100));
  EXPECT_EQ(cache.find({2, 0}), nullptr);
  cache.insert({2, 0}, line_of(300));
  EXPECT_EQ((*cache.find({1, 0}))[0], PhysicalAddress{100});
  EXPECT_EQ((*cache.find({2, 0}))[0], PhysicalAddress{300});
}

TEST(PageCache, OverwritesALineInPlace) {
  PageCache cache{64};
  cache.insert({1, 0}, line_of(100));
  cache.insert({1, 0}, line_of(500));
  EXPECT_EQ(cache.lines(), 1U);
  EXPECT_EQ((*cache.find({1, 0}))[0], PhysicalAddress{500});
}

TEST(PageCache, ReplacesTheLeastRecentlyUsedLine) {
  PageCache cache{16};
  cache.insert({1, 0}, line_of(100));
  cache.insert({1, 1}, line_of(200));
  ASSERT_NE(cache.find({1, 0}), nullptr);
  cache.insert({1, 2}, line_of(300));
  EXPECT_NE(cache.find({1, 0}), nullptr);
  EXPECT_EQ(cache.find({1, 1}), nullptr);
  EXPECT_NE(cache.find({1, 2}), nullptr);
  EXPECT_EQ(cache.lines(), 2U);
}

TEST(PageCache, RandomUseFollowsAListByRecency) {
  constexpr std::uint64_t kSeed = 4'711;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random{kSeed};
  PageCache cache{8 * 5};
  std::list<std::pair<std::uint64_t, std::uint64_t>> reference;  // (line, first entry), newest first
  std::uint64_t hits = 0;
  for (std::uint64_t step = 0; step < 20'000; ++step) {
    const std::uint64_t key = random.below(12);
    const auto known = std::find_if(reference.begin(), reference.end(), [&](const auto& e) { return e.first == key; });
    if (random.below(2) == 0) {
      const PageCache::Line* found = cache.find({7, key});
      ASSERT_EQ(found != nullptr, known != reference.end()) << step;
      if (found == nullptr) continue;
      ++hits;
      ASSERT_EQ((*found)[0].value(), known->second) << step;
      reference.splice(reference.begin(), reference, known);
    } else {
      cache.insert({7, key}, line_of(step * 8));
      if (known != reference.end()) reference.erase(known);
      reference.emplace_front(key, step * 8);
      if (reference.size() > 5) reference.pop_back();
    }
  }
  EXPECT_GT(hits, 2'000U);
}

}  // namespace
}  // namespace rvma
