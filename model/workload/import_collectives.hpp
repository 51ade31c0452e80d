/// \file
/// Collectives as the messages that they are made of: rings, trees, everyone with everyone. Which of them stands for
/// which collective is described in docs/reference/import.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "workload/import_graph.hpp"

namespace rvma::import_detail {

/// In the order of Chakra's CollectiveCommType.
enum class CollectiveKind : std::uint8_t {
  all_reduce,
  reduce,
  all_gather,
  gather,
  scatter,
  broadcast,
  all_to_all,
  reduce_scatter,
  reduce_scatter_block,
  barrier
};
constexpr std::size_t kCollectiveKinds = 10;

std::string_view name(CollectiveKind kind);

/// One rank's part in a collective. `begin` and `end` are operations of the graph that do nothing themselves: what the
/// rank waits for before the collective precedes `begin`, what waits for the collective follows `end`.
struct CollectivePart {
  std::uint32_t rank = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  ImportPlace place;
};

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint64_t size = 0;  ///< bytes, of what: see messages in docs/reference/import.md
  std::uint32_t root = 0;  ///< rank; of reduce, gather, scatter and broadcast
  std::uint32_t tag = 0;   ///< of all its messages
  std::vector<CollectivePart> parts;
};

/// Messages of a collective among so many ranks.
std::uint64_t message_count(CollectiveKind kind, std::uint64_t ranks);

/// Adds the messages of `call` to `graph`, between the beginnings and the ends of its parts. `root` has to be among
/// them.
void expand(const CollectiveCall& call, ImportGraph& graph);

/// One rank's collective as a file has it, before it has met its like of the other ranks.
struct CollectiveNode {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint64_t size = 0;
  std::int64_t root = -1;  ///< rank; -1: the least of the group
  CollectivePart part;
};

/// What all ranks' files say of the collectives of one group of ranks.
struct CollectiveGroup {
  std::string name;  ///< empty: all ranks
  std::vector<CollectiveNode> nodes;
};

/// The k-th collective of a group is the same one on all its ranks; one after another. Mistakes: kinds, sizes or roots
/// that differ, a rank that has fewer than the others, a root that is not in the group, more messages than can be kept.
void match_collectives(const std::vector<CollectiveGroup>& groups, ImportGraph& graph, ImportLog& log);

/// Tags from here on are those of collectives.
constexpr std::uint32_t kFirstCollectiveTag = 1U << 31U;

}  // namespace rvma::import_detail
