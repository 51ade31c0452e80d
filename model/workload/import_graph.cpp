#include "workload/import_graph.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "workload/trace_limits.hpp"

namespace rvma::import_detail {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// Who sends what to whom.
struct Triple {
  std::uint32_t destination = 0;
  std::uint32_t source = 0;
  std::uint32_t tag = 0;
  auto key() const { return std::tie(destination, source, tag); }
  friend bool operator<(const Triple& a, const Triple& b) { return a.key() < b.key(); }
  friend bool operator==(const Triple& a, const Triple& b) { return a.key() == b.key(); }
};

/// What a receive takes that leaves something open. What it does not look at is 0.
struct Pattern {
  Triple triple;
  bool any_source = false;
  bool any_tag = false;
  auto key() const { return std::tie(triple.destination, any_source, any_tag, triple.source, triple.tag); }
  friend bool operator<(const Pattern& a, const Pattern& b) { return a.key() < b.key(); }
  friend bool operator==(const Pattern& a, const Pattern& b) { return a.key() == b.key(); }
  bool takes(const Triple& other) const {
    return (any_source || other.source == triple.source) && (any_tag || other.tag == triple.tag);
  }
};

Triple triple_of(const ImportOperation& op) {
  return op.kind == ImportKind::send ? Triple{op.peer, op.rank, op.tag} : Triple{op.rank, op.peer, op.tag};
}
bool is_wild(const ImportOperation& op) { return op.any_source || op.any_tag; }
Pattern pattern_of(const ImportOperation& op) {
  return {{op.rank, op.any_source ? 0 : op.peer, op.any_tag ? 0 : op.tag}, op.any_source, op.any_tag};
}

template <class T>
void sort_unique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

template <class T>
std::uint32_t place_in(const std::vector<T>& sorted, const T& value) {
  return static_cast<std::uint32_t>(std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin());
}

/// Numbers that are joined to groups; a group is known by its least member.
class Groups {
 public:
  explicit Groups(std::size_t size) : parent_(size) {
    for (std::size_t i = 0; i < size; ++i) parent_[i] = static_cast<std::uint32_t>(i);
  }
  std::uint32_t of(std::uint32_t member) {
    while (parent_[member] != member) member = parent_[member] = parent_[parent_[member]];
    return member;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    a = of(a);
    b = of(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::uint32_t> parent_;
};

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

class Planner {
 public:
  Planner(const ImportGraph& graph, Time latency, ImportLog& log) : graph_(graph), latency_(latency), log_(log) {}

  ImportPlan run() {
    check_operations();
    if (!log_.errors().empty()) return {};
    make_channels();
    check_matches();
    if (!log_.errors().empty()) return {};
    put_in_order();
    return std::move(plan_);
  }

 private:
  /// Of a channel, while operations are put in order.
  struct Traffic {
    std::vector<std::uint32_t> sends;     ///< operations whose messages are on their way or there
    std::vector<std::int64_t> arrivals;   ///< of these messages, in ps
    std::vector<std::uint32_t> receives;  ///< operations that may take a message, in the order in which they do
  };
  struct Ready {
    std::int64_t at;
    std::uint32_t turn;  ///< among what is ready at one time: sends, receives, computing
    std::uint32_t rank;
    std::uint32_t operation;
    auto key() const { return std::tie(at, turn, rank, operation); }
    friend bool operator>(const Ready& a, const Ready& b) { return a.key() > b.key(); }
  };

  const ImportOperation& operation(std::uint32_t index) const { return graph_.operations[index]; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(graph_.operations.size()); }
  void fail(const ImportPlace& place, std::string what, std::string expected) {
    log_.errors().add(graph_.position(place), std::move(what), std::move(expected));
  }

  void check_operations() {
    for (const ImportOperation& op : graph_.operations) {
      if (op.kind == ImportKind::compute) continue;
      if (!op.any_source && op.peer >= graph_.ranks) {
        fail(op.place, "rank " + std::to_string(op.peer) + " is out of range",
             "expected 0.." + std::to_string(graph_.ranks - 1));
      }
      if (op.size > trace_detail::kMostLocalBytes) {
        fail(op.place, "a message of " + std::to_string(op.size) + " bytes is too large",
             "expected at most " + to_string(Bytes{trace_detail::kMostLocalBytes}));
      }
    }
  }

  // ------------------------------------------------------------------------------------------------------ mailboxes

  void make_channels() {
    // 1. What occurs.
    std::vector<Triple> triples;
    std::vector<Pattern> patterns;
    for (const ImportOperation& op : graph_.operations) {
      if (op.kind == ImportKind::compute) continue;
      if (is_wild(op)) {
        patterns.push_back(pattern_of(op));
      } else {
        triples.push_back(triple_of(op));
      }
    }
    sort_unique(triples);
    sort_unique(patterns);
    // 2. All that one receive may take is one channel.
    Groups groups(triples.size());
    std::vector<std::uint32_t> member(patterns.size(), kNone);  // a triple that the pattern takes
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      const std::uint32_t destination = patterns[i].triple.destination;
      for (std::uint32_t t = place_in(triples, Triple{destination, 0, 0});
           t < triples.size() && triples[t].destination == destination; ++t) {
        if (!patterns[i].takes(triples[t])) continue;
        if (member[i] != kNone) groups.join(member[i], t);
        member[i] = t;
      }
    }
    // 3. Channels, numbered in the order of their least triples; a receive that nothing can meet has one of its own.
    std::vector<std::uint32_t> number(triples.size());
    for (std::uint32_t t = 0; t < triples.size(); ++t) {
      if (groups.of(t) == t) {
        number[t] = static_cast<std::uint32_t>(plan_.channels.size());
        const Triple& least = triples[t];
        plan_.channels.push_back({least.destination, (std::uint64_t{least.source} << 32U) | least.tag, 0, 0});
      } else {
        number[t] = number[groups.of(t)];
      }
    }
    plan_.channel.assign(count(), kNone);
    for (std::uint32_t i = 0; i < count(); ++i) {
      const ImportOperation& op = operation(i);
      if (op.kind == ImportKind::compute) continue;
      if (!is_wild(op)) {
        plan_.channel[i] = number[place_in(triples, triple_of(op))];
      } else if (const std::uint32_t taken = member[place_in(patterns, pattern_of(op))]; taken != kNone) {
        plan_.channel[i] = number[taken];
      } else {
        fail(op.place, "no rank sends what this receive takes", "expected a send for each receive");
      }
    }
  }

  /// As many sends as receives, of each channel.
  void check_matches() {
    std::vector<std::int64_t> balance(plan_.channels.size());
    for (std::uint32_t i = 0; i < count(); ++i) {
      if (plan_.channel[i] == kNone) continue;
      const bool is_send = operation(i).kind == ImportKind::send;
      balance[plan_.channel[i]] += is_send ? 1 : -1;
      ImportChannel& channel = plan_.channels[plan_.channel[i]];
      if (is_send) channel.size = std::max(channel.size, operation(i).size);
      if (is_send) ++channel.messages;
    }
    // The last ones are those that are too many.
    std::vector<std::uint32_t> unmatched;
    for (std::uint32_t i = count(); i-- > 0;) {
      if (plan_.channel[i] == kNone) continue;
      std::int64_t& left = balance[plan_.channel[i]];
      if (left == 0 || (left > 0) != (operation(i).kind == ImportKind::send)) continue;
      left += left > 0 ? -1 : 1;
      unmatched.push_back(i);
    }
    std::for_each(unmatched.rbegin(), unmatched.rend(), [&](std::uint32_t i) { report_unmatched(operation(i)); });
  }

  void report_unmatched(const ImportOperation& op) {
    const std::string tag = op.any_tag ? "any tag" : "tag " + std::to_string(op.tag);
    if (op.kind == ImportKind::send) {
      return fail(op.place,
                  "nobody receives this message of rank " + std::to_string(op.rank) + " to rank " +
                      std::to_string(op.peer) + " with " + tag,
                  "expected as many receives as sends");
    }
    const std::string source = op.any_source ? "any rank" : "rank " + std::to_string(op.peer);
    fail(op.place,
         "nobody sends what rank " + std::to_string(op.rank) + " receives here from " + source + " with " + tag,
         "expected as many sends as receives");
  }

  // ---------------------------------------------------------------------------------------------------------- order

  /// Plays all ranks, with messages that take `latency_` each: what is put in order so can be played so.
  void put_in_order() {
    link();
    traffic_.resize(plan_.channels.size());
    clock_.assign(graph_.ranks, 0);
    available_.assign(count(), 0);
    plan_.number.assign(count(), 0);
    plan_.idle_ps.assign(count(), 0);
    plan_.order.reserve(count());
    for (std::uint32_t i = 0; i < count(); ++i) {
      if (waits_for_[i] == 0) make_ready(i);
    }
    while (!ready_.empty()) {
      const Ready next = ready_.top();
      ready_.pop();
      play(next);
    }
    if (plan_.order.size() < count()) report_standstill();
  }

  void link() {
    waits_for_.assign(count(), 0);
    first_after_.assign(count() + std::size_t{1}, 0);
    for (const ImportDependency& dependency : graph_.dependencies) {
      ++waits_for_[dependency.after];
      ++first_after_[dependency.before + std::size_t{1}];
    }
    for (std::size_t i = 0; i < count(); ++i) first_after_[i + 1] += first_after_[i];
    after_.resize(graph_.dependencies.size());
    std::vector<std::uint32_t> next(first_after_.begin(), first_after_.end() - 1);
    for (const ImportDependency& dependency : graph_.dependencies) {
      after_[next[dependency.before]++] = dependency.after;
    }
  }

  /// All that `index` requires has been put in order.
  void make_ready(std::uint32_t index) {
    const ImportOperation& op = operation(index);
    if (op.kind == ImportKind::send) available_[index] = std::max(available_[index], op.time.ps());
    if (op.kind != ImportKind::receive) return push(index);
    Traffic& traffic = traffic_[plan_.channel[index]];
    plan_.number[index] = static_cast<std::uint32_t>(traffic.receives.size());
    traffic.receives.push_back(index);
    if (traffic.receives.size() <= traffic.arrivals.size()) meet(index);
  }

  /// The message of this receive has been sent.
  void meet(std::uint32_t receive) {
    const Traffic& traffic = traffic_[plan_.channel[receive]];
    const std::uint32_t number = plan_.number[receive];
    const ImportOperation& send = operation(traffic.sends[number]);
    if (send.size > operation(receive).size) {
      fail(send.place,
           "a message of " + std::to_string(send.size) + " bytes for a receive of " +
               std::to_string(operation(receive).size),
           "expected at most that; the receive is in line " + std::to_string(operation(receive).place.line));
    }
    available_[receive] = std::max(available_[receive], traffic.arrivals[number]);
    push(receive);
  }

  void push(std::uint32_t index) {
    static constexpr std::array<std::uint32_t, 3> kTurns{0, 1, 2};  // in the order of ImportKind
    const ImportOperation& op = operation(index);
    ready_.push({available_[index], kTurns[static_cast<std::size_t>(op.kind)], op.rank, index});
  }

  void play(const Ready& next) {
    const ImportOperation& op = operation(next.operation);
    plan_.order.push_back(next.operation);
    std::int64_t& clock = clock_[op.rank];
    std::int64_t end = std::max(next.at, clock);
    switch (op.kind) {
      case ImportKind::compute:
        clock = end = sum(end, op.time.ps());
        break;
      case ImportKind::send:
        plan_.idle_ps[next.operation] = std::max<std::int64_t>(op.time.ps() - clock, 0);
        clock = end;
        deliver(next.operation, sum(end, latency_.ps()));
        break;
      case ImportKind::receive:
        end = next.at;  // a rank waits only where something requires the message
        break;
    }
    for (std::uint32_t i = first_after_[next.operation]; i < first_after_[next.operation + std::size_t{1}]; ++i) {
      const std::uint32_t after = after_[i];
      available_[after] = std::max(available_[after], end);
      if (--waits_for_[after] == 0) make_ready(after);
    }
  }

  void deliver(std::uint32_t send, std::int64_t arrival) {
    Traffic& traffic = traffic_[plan_.channel[send]];
    const auto number = static_cast<std::uint32_t>(traffic.arrivals.size());
    plan_.number[send] = number;
    traffic.sends.push_back(send);
    traffic.arrivals.push_back(arrival);
    if (number < traffic.receives.size()) meet(traffic.receives[number]);
  }

  // ----------------------------------------------------------------------------------------------------- standstill

  void report_standstill() {
    std::vector<bool> played(count());
    for (const std::uint32_t index : plan_.order) played[index] = true;
    // 1. For each operation left, one that it waits for.
    std::vector<std::uint32_t> waits_for(count(), kNone);
    std::vector<std::uint32_t> by(count(), kNone);  // the dependency that says so
    for (std::uint32_t d = 0; d < graph_.dependencies.size(); ++d) {
      const ImportDependency& dependency = graph_.dependencies[d];
      if (played[dependency.before]) continue;
      waits_for[dependency.after] = dependency.before;
      by[dependency.after] = d;
    }
    std::vector<std::uint32_t> unsent(plan_.channels.size(), kNone);
    for (std::uint32_t i = 0; i < count(); ++i) {
      if (!played[i] && operation(i).kind == ImportKind::send) unsent[plan_.channel[i]] = i;
    }
    std::uint32_t start = kNone;
    for (std::uint32_t i = 0; i < count(); ++i) {
      if (played[i]) continue;
      if (start == kNone) start = i;
      if (waits_for[i] == kNone) waits_for[i] = unsent[plan_.channel[i]];
    }
    // 2. From any of them the way leads into a circle.
    std::vector<bool> seen(count());
    for (; !seen[start]; start = waits_for[start]) seen[start] = true;
    report_circle(start, waits_for, by);
  }

  static bool is_earlier(const ImportPlace& a, const ImportPlace& b) {
    return std::tie(a.source, a.line, a.column) < std::tie(b.source, b.line, b.column);
  }

  void report_circle(std::uint32_t start, const std::vector<std::uint32_t>& waits_for,
                     const std::vector<std::uint32_t>& by) {
    constexpr std::size_t kNamed = 8;
    std::string lines;
    std::size_t length = 0;
    const ImportPlace* place = nullptr;
    std::uint32_t at = start;
    do {
      if (length++ < kNamed) lines += (lines.empty() ? "" : ", ") + std::to_string(operation(at).place.line);
      if (by[at] != kNone && (place == nullptr || is_earlier(graph_.dependencies[by[at]].place, *place)))
        place = &graph_.dependencies[by[at]].place;
      at = waits_for[at];
    } while (at != start);
    if (length > kNamed) lines += ", ...";
    fail(place == nullptr ? operation(start).place : *place,
         std::to_string(length) + (length == 1 ? " operation waits for itself" : " operations wait for one another") +
             " (line" + (length == 1 ? " " : "s ") + lines + "), and " + std::to_string(count() - plan_.order.size()) +
             " of " + std::to_string(count()) + " can never start",
         "expected dependencies and messages without a circle");
  }

  const ImportGraph& graph_;
  Time latency_;
  ImportLog& log_;
  ImportPlan plan_;
  std::vector<std::uint32_t> waits_for_;    ///< of each operation: dependencies that are not met
  std::vector<std::uint32_t> first_after_;  ///< of each operation, in after_
  std::vector<std::uint32_t> after_;        ///< what requires it
  std::vector<std::int64_t> available_;     ///< when an operation may begin, in ps
  std::vector<std::int64_t> clock_;         ///< of each rank, in ps
  std::vector<Traffic> traffic_;            ///< of each channel
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready_;
};

}  // namespace

ImportPlan plan_import(const ImportGraph& graph, Time latency, ImportLog& log) {
  return Planner(graph, latency, log).run();
}

}  // namespace rvma::import_detail
