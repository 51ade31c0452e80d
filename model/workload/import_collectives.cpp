#include "workload/import_collectives.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace rvma::import_detail {
namespace {

/// Of an import: some gigabytes of operations.
constexpr std::uint64_t kMostMessages = 1U << 25U;

constexpr std::array<std::string_view, kCollectiveKinds> kNames{
    "all-reduce", "reduce",     "all-gather",     "gather",         "scatter",
    "broadcast",  "all-to-all", "reduce-scatter", "reduce-scatter", "barrier"};

bool has_root(CollectiveKind kind) {
  return kind == CollectiveKind::reduce || kind == CollectiveKind::gather || kind == CollectiveKind::scatter ||
         kind == CollectiveKind::broadcast;
}

/// Adds messages between members, which are numbered from 0 in the order of their ranks.
class Expander {
 public:
  Expander(const CollectiveCall& call, ImportGraph& graph)
      : call_(call), graph_(graph), count_(call.parts.size()), received_(count_) {}

  void run() {
    switch (call_.kind) {
      case CollectiveKind::all_reduce:
        // The pieces go around once to be added up and once more to be known to all.
        return ring(2 * (count_ - 1), true);
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::reduce_scatter_block:
        return ring(count_ - 1, true);
      case CollectiveKind::all_gather:
        return ring(count_ - 1, false);
      case CollectiveKind::all_to_all:
        return all_to_all();
      case CollectiveKind::broadcast:
        return broadcast();
      case CollectiveKind::reduce:
        return reduce();
      case CollectiveKind::gather:
      case CollectiveKind::scatter:
        return with_root();
      case CollectiveKind::barrier:
        return barrier();
    }
  }

 private:
  /// Of `size` bytes in as many pieces as members, as alike as can be.
  std::uint64_t piece(std::size_t number) const {
    return call_.size / count_ + (number % count_ < call_.size % count_ ? 1 : 0);
  }
  std::size_t root() const {
    const auto found = std::find_if(call_.parts.begin(), call_.parts.end(),
                                    [&](const CollectivePart& part) { return part.rank == call_.root; });
    RVMA_ASSERT(found != call_.parts.end(), "the root of a collective is not in its group");
    return static_cast<std::size_t>(found - call_.parts.begin());
  }
  /// The member whose distance from the root is `distance`.
  std::size_t from_root(std::size_t distance) const { return (root_ + distance) % count_; }

  std::uint32_t operation(ImportKind kind, std::size_t member, std::size_t peer, std::uint64_t size) {
    ImportOperation op;
    op.kind = kind;
    op.rank = call_.parts[member].rank;
    op.peer = call_.parts[peer].rank;
    op.tag = call_.tag;
    op.size = size;
    op.place = call_.parts[member].place;
    const std::uint32_t index = graph_.add(op);
    require(member, call_.parts[member].begin, index);
    require(member, index, call_.parts[member].end);
    return index;
  }
  void require(std::size_t member, std::uint32_t before, std::uint32_t after) {
    graph_.dependencies.push_back({before, after, false, call_.parts[member].place});
  }

  /// A message that is sent when the sender has received what it had to in earlier rounds.
  void send(std::size_t from, std::size_t to, std::uint64_t size) {
    const std::uint32_t sent = operation(ImportKind::send, from, to, size);
    for (const std::uint32_t receive : received_[from]) require(from, receive, sent);
    arriving_.emplace_back(to, operation(ImportKind::receive, to, from, size));
  }
  /// The next round needs all that was sent so far, or, if `only_last`, the last round's.
  void end_round(bool only_last = false) {
    if (only_last) {
      for (const auto& [member, receive] : arriving_) received_[member].clear();
    }
    for (const auto& [member, receive] : arriving_) received_[member].push_back(receive);
    arriving_.clear();
  }

  void ring(std::size_t rounds, bool in_pieces) {
    for (std::size_t round = 0; round < rounds; ++round) {
      for (std::size_t member = 0; member < count_; ++member) {
        // A piece moves on by one member a round; 2 * count_ keeps the number above 0.
        send(member, (member + 1) % count_, in_pieces ? piece(member + 2 * count_ - round) : call_.size);
      }
      end_round(true);
    }
  }

  void all_to_all() {
    for (std::size_t distance = 1; distance < count_; ++distance) {
      for (std::size_t member = 0; member < count_; ++member) {
        const std::size_t to = (member + distance) % count_;
        send(member, to, piece(to));
      }
    }
  }

  /// A binomial tree: who has it passes it on to the member that is 1, 2, 4, .. further from the root.
  void broadcast() {
    root_ = root();
    for (std::size_t step = 1; step < count_; step *= 2) {
      for (std::size_t distance = 0; distance < step && distance + step < count_; ++distance) {
        send(from_root(distance), from_root(distance + step), call_.size);
      }
      end_round();
    }
  }
  /// The same tree, from its leaves.
  void reduce() {
    root_ = root();
    std::size_t step = 1;
    while (step < count_) step *= 2;
    for (step /= 2; step > 0; step /= 2) {
      for (std::size_t distance = 0; distance < step && distance + step < count_; ++distance) {
        send(from_root(distance + step), from_root(distance), call_.size);
      }
      end_round();
    }
  }
  void with_root() {
    root_ = root();
    for (std::size_t distance = 1; distance < count_; ++distance) {
      if (call_.kind == CollectiveKind::gather) send(from_root(distance), root_, call_.size);
      if (call_.kind == CollectiveKind::scatter) send(root_, from_root(distance), call_.size);
    }
  }
  /// Dissemination: after the round of step s everybody knows of the 2s members before it.
  void barrier() {
    for (std::size_t step = 1; step < count_; step *= 2) {
      for (std::size_t member = 0; member < count_; ++member) send(member, (member + step) % count_, 0);
      end_round();
    }
  }

  const CollectiveCall& call_;
  ImportGraph& graph_;
  std::size_t count_;
  std::size_t root_ = 0;                                         ///< member
  std::vector<std::vector<std::uint32_t>> received_;             ///< by member: what its next sends wait for
  std::vector<std::pair<std::size_t, std::uint32_t>> arriving_;  ///< members and receives of the round under way
};

/// Puts the collectives of one group together.
class Matcher {
 public:
  Matcher(const CollectiveGroup& group, std::uint32_t tag, ImportGraph& graph, ImportLog& log)
      : group_(group), tag_(tag), graph_(graph), log_(log) {}

  /// Adds the group's collectives to `calls`, if there is room for their messages, too.
  void run(std::vector<CollectiveCall>& matched, std::uint64_t& messages) {
    sort_by_rank();
    if (!is_complete()) return;
    if (by_rank_.size() == 1 && graph_.ranks > 1) {
      log_.lost(graph_.position(group_.nodes.front().part.place),
                "group " + rvma::quoted(group_.name) + " has one rank only: its collectives send nothing");
    }
    std::size_t longest = 0;
    for (const auto& [rank, calls] : by_rank_) longest = std::max(longest, calls.size());
    for (std::size_t number = 0; number < longest; ++number) {
      CollectiveCall call;
      if (!gather_parts(number, call) || !has_room(call, messages)) return;
      matched.push_back(std::move(call));
    }
  }

 private:
  using Calls = std::vector<const CollectiveNode*>;

  void fail(const CollectiveNode& node, std::string what, std::string expected) {
    log_.errors().add(graph_.position(node.part.place), std::move(what), std::move(expected));
  }
  std::string group_name() const { return group_.name.empty() ? "all ranks" : "group " + rvma::quoted(group_.name); }
  static std::string described(const CollectiveNode& node) {
    std::string text(name(node.kind));
    if (node.kind != CollectiveKind::barrier) text += " of " + std::to_string(node.size) + " bytes";
    if (has_root(node.kind) && node.root >= 0) text += " with root " + std::to_string(node.root);
    return text;
  }

  void sort_by_rank() {
    for (const CollectiveNode& node : group_.nodes) {
      if (by_rank_.empty() || by_rank_.back().first != node.part.rank) by_rank_.emplace_back(node.part.rank, Calls{});
      by_rank_.back().second.push_back(&node);
    }
  }

  /// All ranks are there, if they have to be.
  bool is_complete() {
    if (!group_.name.empty()) return true;
    std::uint32_t expected = 0;
    for (const auto& [rank, calls] : by_rank_) {
      if (rank != expected) break;
      ++expected;
    }
    if (expected == graph_.ranks) return true;
    fail(group_.nodes.front(), "rank " + std::to_string(expected) + " has no collective of all ranks, as this one",
         "expected one in its file, or the attribute pg_name of those that take part");
    return false;
  }

  /// The `number`-th call of every rank.
  bool gather_parts(std::size_t number, CollectiveCall& call) {
    const CollectiveNode* first = nullptr;
    for (const auto& [rank, calls] : by_rank_) {
      if (number < calls.size() && first == nullptr) first = calls[number];
    }
    for (const auto& [rank, calls] : by_rank_) {
      if (number >= calls.size()) {
        fail(*first,
             "this is number " + std::to_string(number + 1) + " of the collectives of " + group_name() + ", and rank " +
                 std::to_string(rank) + " has " + std::to_string(calls.size()),
             "expected as many on all ranks of the group");
        return false;
      }
      const CollectiveNode& node = *calls[number];
      if (node.kind != first->kind || (node.kind != CollectiveKind::barrier && node.size != first->size) ||
          (has_root(node.kind) && node.root != first->root)) {
        fail(node,
             "number " + std::to_string(number + 1) + " of the collectives of " + group_name() + " is " +
                 described(node) + " here, and " + described(*first) + " on rank " + std::to_string(first->part.rank),
             "expected the same on all ranks of the group");
        return false;
      }
      if (number > 0) {
        graph_.dependencies.push_back({calls[number - 1]->part.end, node.part.begin, false, node.part.place});
      }
      call.parts.push_back(node.part);
    }
    call.kind = first->kind;
    call.size = first->size;
    call.tag = tag_;
    return choose_root(*first, call);
  }

  bool choose_root(const CollectiveNode& node, CollectiveCall& call) {
    call.root = call.parts.front().rank;
    if (!has_root(call.kind) || node.root < 0) return true;
    const bool is_there = std::any_of(call.parts.begin(), call.parts.end(),
                                      [&](const CollectivePart& part) { return part.rank == node.root; });
    call.root = static_cast<std::uint32_t>(node.root);
    if (!is_there) {
      fail(node, "rank " + std::to_string(node.root) + ", the root, takes no part", "expected a rank of the group");
    }
    return is_there;
  }

  bool has_room(const CollectiveCall& call, std::uint64_t& messages) {
    messages += message_count(call.kind, call.parts.size());
    if (messages <= kMostMessages) return true;
    log_.errors().add(graph_.position(call.parts.front().place),
                      "collectives up to this one have " + std::to_string(messages) + " messages",
                      "expected at most " + std::to_string(kMostMessages));
    return false;
  }

  const CollectiveGroup& group_;
  std::uint32_t tag_;
  ImportGraph& graph_;
  ImportLog& log_;
  std::vector<std::pair<std::uint32_t, Calls>> by_rank_;
};

}  // namespace

std::string_view name(CollectiveKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::uint64_t message_count(CollectiveKind kind, std::uint64_t ranks) {
  if (ranks < 2) return 0;
  std::uint64_t rounds = 0;
  for (std::uint64_t step = 1; step < ranks; step *= 2) ++rounds;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * ranks * (ranks - 1);
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::reduce_scatter_block:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return ranks * (ranks - 1);
    case CollectiveKind::barrier:
      return ranks * rounds;
    default:
      return ranks - 1;
  }
}

void expand(const CollectiveCall& call, ImportGraph& graph) {
  for (const CollectivePart& part : call.parts) graph.dependencies.push_back({part.begin, part.end, false, part.place});
  if (call.parts.size() > 1) Expander(call, graph).run();
}

void match_collectives(const std::vector<CollectiveGroup>& groups, ImportGraph& graph, ImportLog& log) {
  std::uint64_t messages = 0;
  std::vector<CollectiveCall> calls;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Matcher(groups[i], kFirstCollectiveTag + static_cast<std::uint32_t>(i), graph, log).run(calls, messages);
  }
  if (!log.errors().empty()) return;
  for (const CollectiveCall& call : calls) expand(call, graph);
}

}  // namespace rvma::import_detail
