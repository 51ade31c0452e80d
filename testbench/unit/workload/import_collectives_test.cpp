// Collectives as messages: who depends on whom when it has ended, and how many bytes each rank has sent.
#include "workload/import_collectives.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace rvma::import_detail {
namespace {

constexpr std::uint32_t kTag = kFirstCollectiveTag + 3;

/// A collective among ranks 10, 11, ..
struct Collective {
  ImportGraph graph;
  CollectiveCall call;

  Collective(CollectiveKind kind, std::uint32_t count, std::uint64_t size, std::uint32_t root_index = 0) {
    graph.ranks = 10 + count;
    call.kind = kind;
    call.size = size;
    call.root = 10 + root_index;
    call.tag = kTag;
    for (std::uint32_t i = 0; i < count; ++i) {
      ImportOperation nothing;
      nothing.rank = 10 + i;
      CollectivePart part;
      part.rank = 10 + i;
      part.begin = graph.add(nothing);
      part.end = graph.add(nothing);
      call.parts.push_back(part);
    }
    expand(call, graph);
  }

  std::size_t count() const { return call.parts.size(); }

  std::uint64_t bytes_sent(std::size_t member) const {
    std::uint64_t sum = 0;
    for (const ImportOperation& op : graph.operations) {
      if (op.kind == ImportKind::send && op.rank == call.parts[member].rank) sum += op.size;
    }
    return sum;
  }
  std::uint64_t messages() const {
    return static_cast<std::uint64_t>(
        std::count_if(graph.operations.begin(), graph.operations.end(),
                      [](const ImportOperation& op) { return op.kind == ImportKind::send; }));
  }

  /// Members whose beginning precedes the end of `member`, by dependencies and messages: the k-th receive of a pair
  /// takes what its k-th send sent.
  std::set<std::size_t> known_to(std::size_t member) const {
    std::map<std::tuple<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> sends;
    std::map<std::tuple<std::uint32_t, std::uint32_t>, std::size_t> taken;
    for (std::uint32_t i = 0; i < graph.operations.size(); ++i) {
      const ImportOperation& op = graph.operations[i];
      if (op.kind == ImportKind::send) sends[{op.rank, op.peer}].push_back(i);
    }
    std::vector<std::vector<std::uint32_t>> before(graph.operations.size());
    for (const ImportDependency& dependency : graph.dependencies) {
      EXPECT_EQ(graph.operations[dependency.before].rank, graph.operations[dependency.after].rank);
      before[dependency.after].push_back(dependency.before);
    }
    for (std::uint32_t i = 0; i < graph.operations.size(); ++i) {
      const ImportOperation& op = graph.operations[i];
      if (op.kind != ImportKind::receive) continue;
      const std::size_t number = taken[{op.peer, op.rank}]++;
      const auto& there = sends[{op.peer, op.rank}];
      if (number >= there.size()) {
        ADD_FAILURE() << "a receive of nothing";
        continue;
      }
      EXPECT_EQ(graph.operations[there[number]].size, op.size) << "what is received is what was sent";
      EXPECT_EQ(op.tag, kTag);
      before[i].push_back(there[number]);
    }
    std::vector<bool> seen(graph.operations.size());
    std::vector<std::uint32_t> open{call.parts[member].end};
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      open.insert(open.end(), before[at].begin(), before[at].end());
    }
    std::set<std::size_t> known;
    for (std::size_t i = 0; i < count(); ++i) {
      if (seen[call.parts[i].begin]) known.insert(i);
    }
    return known;
  }
};

std::set<std::size_t> all_of(std::size_t count) {
  std::set<std::size_t> all;
  for (std::size_t i = 0; i < count; ++i) all.insert(i);
  return all;
}

class CollectivesOf : public testing::TestWithParam<std::uint32_t> {};

TEST_P(CollectivesOf, WhoeverHasToKnowOfAllKnowsOfAll) {
  const std::uint32_t count = GetParam();
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::all_to_all,
                                    CollectiveKind::reduce_scatter, CollectiveKind::barrier}) {
    const Collective collective(kind, count, 1000);
    for (std::size_t member = 0; member < count; ++member) {
      EXPECT_EQ(collective.known_to(member), all_of(count)) << name(kind) << " among " << count << ", " << member;
    }
    EXPECT_EQ(collective.messages(), message_count(kind, count)) << name(kind);
  }
}

TEST_P(CollectivesOf, ARootKnowsOrIsKnown) {
  const std::uint32_t count = GetParam();
  for (std::uint32_t root = 0; root < count; ++root) {
    for (const CollectiveKind kind : {CollectiveKind::reduce, CollectiveKind::gather}) {
      const Collective collective(kind, count, 1000, root);
      EXPECT_EQ(collective.known_to(root), all_of(count)) << name(kind);
      EXPECT_EQ(collective.messages(), message_count(kind, count)) << name(kind);
      for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(collective.bytes_sent(i), i == root ? 0 : 1000) << name(kind);
    }
    for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::scatter}) {
      const Collective collective(kind, count, 1000, root);
      for (std::size_t member = 0; member < count; ++member) {
        EXPECT_EQ(collective.known_to(member).count(root), 1U) << name(kind);
      }
      EXPECT_EQ(collective.messages(), message_count(kind, count)) << name(kind);
    }
  }
}

TEST_P(CollectivesOf, PiecesAddUp) {
  const std::uint32_t count = GetParam();
  for (const std::uint64_t size : {0U, 1U, 7U, 1000U}) {
    // Around the ring every piece is sent count - 1 times, by one member each time.
    const auto total = [&](CollectiveKind kind) {
      const Collective collective(kind, count, size);
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < count; ++i) sum += collective.bytes_sent(i);
      return sum;
    };
    EXPECT_EQ(total(CollectiveKind::reduce_scatter), size * (count - 1));
    EXPECT_EQ(total(CollectiveKind::reduce_scatter_block), size * (count - 1));
    EXPECT_EQ(total(CollectiveKind::all_reduce), 2 * size * (count - 1));
    EXPECT_EQ(total(CollectiveKind::all_to_all), size * (count - 1));
    EXPECT_EQ(total(CollectiveKind::all_gather), size * count * (count - 1));
    EXPECT_EQ(total(CollectiveKind::barrier), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CollectivesOf, testing::Values(1, 2, 3, 4, 5, 8, 13));

TEST(Collectives, ABroadcastTakesTheLogarithmOfItsRanksInRounds) {
  const Collective collective(CollectiveKind::broadcast, 8, 5);
  EXPECT_EQ(collective.bytes_sent(0), 15U);  // to the members that are 1, 2 and 4 away
  EXPECT_EQ(collective.bytes_sent(1), 10U);
  EXPECT_EQ(collective.bytes_sent(2), 5U);
  EXPECT_EQ(collective.bytes_sent(4), 0U);
}

}  // namespace
}  // namespace rvma::import_detail
