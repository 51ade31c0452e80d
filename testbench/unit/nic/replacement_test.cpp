#include "nic/replacement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <set>

namespace rvma {
namespace {

using Place = ReplacementPolicy::Place;
constexpr Place kNone = ReplacementPolicy::kNone;

ReplacementName named(const std::string& name) { return *ValueText<ReplacementName>::parse(name); }
std::unique_ptr<ReplacementPolicy> make(const std::string& name, std::uint64_t seed = 1) {
  return make_replacement(named(name), Random{seed});
}
bool any(Place /*place*/) { return true; }

class EveryPolicy : public testing::TestWithParam<std::string> {};

TEST_P(EveryPolicy, HasItsNameInTheConfiguration) {
  EXPECT_EQ(ValueText<ReplacementName>::print(named(GetParam())), GetParam());
  EXPECT_NE(ValueText<ReplacementName>::type_name().find(GetParam()), std::string::npos);
}

TEST_P(EveryPolicy, NamesOnlyFilledPlacesThatMayGo) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random{seed};
    const auto policy = make(GetParam(), seed);
    std::set<Place> filled;
    std::set<Place> pinned;
    for (int step = 0; step < 500; ++step) {
      const auto place = static_cast<Place>(random.below(37));
      if (filled.count(place) == 0) {
        policy->filled(place);
        filled.insert(place);
        if (random.below(2) == 0) pinned.insert(place);
      } else if (random.below(3) == 0) {
        policy->freed(place);
        filled.erase(place);
        pinned.erase(place);
      } else {
        policy->used(place);
      }
      const Place victim = policy->victim([&](Place candidate) { return pinned.count(candidate) == 0; });
      const bool has_candidate =
          std::any_of(filled.begin(), filled.end(), [&](Place p) { return pinned.count(p) == 0; });
      if (has_candidate) {
        ASSERT_EQ(filled.count(victim), 1U);
        ASSERT_EQ(pinned.count(victim), 0U);
      } else {
        ASSERT_EQ(victim, kNone);
      }
    }
  }
}

TEST_P(EveryPolicy, OfNothingNamesNothing) {
  const auto policy = make(GetParam());
  EXPECT_EQ(policy->victim(any), kNone);
  policy->filled(0);
  EXPECT_EQ(policy->victim(any), 0U);
  policy->freed(0);
  EXPECT_EQ(policy->victim(any), kNone);
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicy, testing::ValuesIn(replacement_names()),
                         [](const auto& policy) { return policy.param; });

TEST(ReplacementName, UnknownOnesAreAnError) {
  EXPECT_FALSE(ValueText<ReplacementName>::parse("mru"));
  EXPECT_FALSE(ValueText<ReplacementName>::parse(""));
  EXPECT_EQ(ValueText<ReplacementName>::print(ReplacementName{}), "lru");
}

/// Drives a policy and a plain list of places, oldest first, and compares all victims.
void compare_with_list(const std::string& name, bool use_renews) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random{seed};
    const auto policy = make(name);
    std::list<Place> oldest_first;
    for (int step = 0; step < 1000; ++step) {
      const auto place = static_cast<Place>(random.below(12));
      const auto at = std::find(oldest_first.begin(), oldest_first.end(), place);
      if (at == oldest_first.end()) {
        policy->filled(place);
        oldest_first.push_back(place);
      } else if (random.below(4) == 0) {
        policy->freed(place);
        oldest_first.erase(at);
      } else {
        policy->used(place);
        if (use_renews) oldest_first.splice(oldest_first.end(), oldest_first, at);
      }
      ASSERT_EQ(policy->victim(any), oldest_first.empty() ? kNone : oldest_first.front());
    }
  }
}

TEST(Lru, NamesTheOneUsedLeastRecently) { compare_with_list("lru", true); }
TEST(Fifo, NamesTheOneFilledFirst) { compare_with_list("fifo", false); }

TEST(PseudoLru, FollowsTheTree) {
  // Four places in a tree of three bits, by hand: after 0 1 2 3 the root points left, the left half at 0.
  const auto policy = make("pseudo_lru");
  for (Place place = 0; place < 4; ++place) policy->filled(place);
  EXPECT_EQ(policy->victim(any), 0U);
  policy->used(0);
  EXPECT_EQ(policy->victim(any), 2U) << "exact order would say 1";
  policy->used(2);
  EXPECT_EQ(policy->victim(any), 1U);
  policy->used(1);
  EXPECT_EQ(policy->victim(any), 3U);
}

TEST(PseudoLru, NeverNamesTheLastUsed) {
  constexpr std::uint64_t kSeed = 9;
  Random random{kSeed};
  const auto policy = make("pseudo_lru");
  for (Place place = 0; place < 64; ++place) policy->filled(place);
  for (int step = 0; step < 5000; ++step) {
    const auto place = static_cast<Place>(random.below(64));
    policy->used(place);
    ASSERT_NE(policy->victim(any), place) << "seed " << kSeed;
  }
}

TEST(RandomReplacement, DrawsAllPlacesAlikeAndRepeatsWithItsSeed) {
  const auto policy = make("random", 3);
  const auto same = make("random", 3);
  std::map<Place, int> named_times;
  for (Place place = 0; place < 16; ++place) {
    policy->filled(place);
    same->filled(place);
  }
  for (int i = 0; i < 16'000; ++i) {
    const Place victim = policy->victim(any);
    ASSERT_EQ(victim, same->victim(any));
    ++named_times[victim];
  }
  // 1,000 each on average, standard deviation 31.
  for (Place place = 0; place < 16; ++place) EXPECT_NEAR(named_times[place], 1000, 150) << place;
}

}  // namespace
}  // namespace rvma
