// The trace of an import: what every rank opens, posts, sends and waits for, in the order of the plan.
#include <algorithm>
#include <cstdio>
#include <ostream>

#include "workload/import_graph.hpp"

namespace rvma::import_detail {
namespace {

/// Names that one line waits for at most.
constexpr std::size_t kNamesALine = 16;

std::string hex(std::uint64_t value) {
  char text[19];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

class Writer {
 public:
  Writer(const ImportGraph& graph, const ImportPlan& plan, std::ostream& out) : graph_(graph), plan_(plan), out_(out) {}

  void write() {
    out_ << "rvma-trace 1\n";
    for (const std::string& remark : graph_.remarks) out_ << "# " << remark << "\n";
    out_ << "ranks " << graph_.ranks << "\n";
    sort_by_rank();
    list_requirements();
    ended_.assign(graph_.operations.size(), false);
    started_.assign(graph_.operations.size(), false);
    for (std::uint32_t rank = 0; rank < graph_.ranks; ++rank) write_rank(rank);
  }

 private:
  void sort_by_rank() {
    first_of_rank_.assign(graph_.ranks + std::size_t{1}, 0);
    for (const ImportOperation& op : graph_.operations) ++first_of_rank_[op.rank + std::size_t{1}];
    for (std::size_t r = 0; r < graph_.ranks; ++r) first_of_rank_[r + 1] += first_of_rank_[r];
    by_rank_.resize(graph_.operations.size());
    std::vector<std::uint32_t> next(first_of_rank_.begin(), first_of_rank_.end() - 1);
    for (const std::uint32_t index : plan_.order) by_rank_[next[graph_.operations[index].rank]++] = index;
  }

  /// Dependencies by what depends; sends that something waits for by name.
  void list_requirements() {
    const std::size_t count = graph_.operations.size();
    first_required_.assign(count + 1, 0);
    is_named_.assign(count, false);
    for (const ImportDependency& dependency : graph_.dependencies) {
      ++first_required_[dependency.after + std::size_t{1}];
      if (!dependency.start_only) is_named_[dependency.before] = true;
    }
    for (std::size_t i = 0; i < count; ++i) first_required_[i + 1] += first_required_[i];
    required_.resize(graph_.dependencies.size());
    std::vector<std::uint32_t> next(first_required_.begin(), first_required_.end() - 1);
    for (const ImportDependency& dependency : graph_.dependencies) {
      required_[next[dependency.after]++] = {dependency.before, dependency.start_only};
    }
  }

  void write_rank(std::uint32_t rank) {
    if (first_of_rank_[rank] == first_of_rank_[rank + std::size_t{1}]) return;
    out_ << "rank " << rank << "\n";
    open_windows(rank);
    out_ << "  barrier\n  mark begin\n";
    for (std::uint32_t i = first_of_rank_[rank]; i < first_of_rank_[rank + std::size_t{1}]; ++i)
      write_operation(by_rank_[i]);
    flush_waits();
    // What nothing requires is waited for last: it holds nothing up.
    for (std::uint32_t i = first_of_rank_[rank]; i < first_of_rank_[rank + std::size_t{1}]; ++i) {
      if (graph_.operations[by_rank_[i]].kind == ImportKind::receive) end(by_rank_[i]);
    }
    flush_waits();
    out_ << "  wait all\n  mark end\n";
  }

  void open_windows(std::uint32_t rank) {
    while (next_channel_ < plan_.channels.size() && plan_.channels[next_channel_].rank == rank) {
      const ImportChannel& channel = plan_.channels[next_channel_];
      const std::string name = std::to_string(next_channel_);
      out_ << "  init_window w" << name << " mailbox=" << hex(channel.mailbox) << " threshold=1op\n";
      for (std::uint32_t i = 0; i < channel.messages; ++i) {
        out_ << "  post_buffer w" << name << " as=b" << name << "_" << i
             << " size=" << std::max<std::uint64_t>(channel.size, 1) << "\n";
      }
      ++next_channel_;
    }
  }

  void write_operation(std::uint32_t index) {
    const ImportOperation& op = graph_.operations[index];
    if (op.kind == ImportKind::receive) return;  // its buffer is posted; something may wait for it
    start(index);
    flush_waits();
    if (op.kind == ImportKind::compute) {
      if (op.time > Time::zero()) out_ << "  compute " << op.time.ps() << "ps\n";
      return;
    }
    if (plan_.idle_ps[index] > 0) out_ << "  compute " << plan_.idle_ps[index] << "ps\n";
    const ImportChannel& channel = plan_.channels[plan_.channel[index]];
    out_ << "  put rank=" << op.peer << " mailbox=" << hex(channel.mailbox) << " size=" << op.size;
    if (is_named_[index]) out_ << " as=p" << index;
    out_ << "\n";
  }

  /// Waits until `index` may start; start() and end() of what it requires, and so on, without recursion.
  void start(std::uint32_t index) { require({index, true}); }
  /// Waits until `index`, which has a place in the program before this one, has ended.
  void end(std::uint32_t index) { require({index, false}); }

  struct Requirement {
    std::uint32_t operation;
    bool start_only;
  };

  void require(const Requirement& wanted) {
    open_.push_back(wanted);
    while (!open_.empty()) {
      const Requirement top = open_.back();
      if (!started_[top.operation]) {
        // What it requires comes first; then it is at the top again.
        started_[top.operation] = true;
        for (std::uint32_t i = first_required_[top.operation]; i < first_required_[top.operation + std::size_t{1}];
             ++i) {
          if (!is_met(required_[i])) open_.push_back(required_[i]);
        }
        continue;
      }
      open_.pop_back();
      if (!top.start_only && !ended_[top.operation]) wait_for(top.operation);
    }
  }

  bool is_met(const Requirement& requirement) const {
    return requirement.start_only ? started_[requirement.operation] : ended_[requirement.operation];
  }

  void wait_for(std::uint32_t index) {
    ended_[index] = true;
    const ImportOperation& op = graph_.operations[index];
    if (op.kind == ImportKind::compute) return;
    if (waits_ == kNamesALine) flush_waits();
    out_ << (waits_++ == 0 ? "  wait " : " ");
    if (op.kind == ImportKind::send) {
      out_ << "p" << index;
    } else {
      out_ << "b" << plan_.channel[index] << "_" << plan_.number[index];
    }
  }

  void flush_waits() {
    if (waits_ > 0) out_ << "\n";
    waits_ = 0;
  }

  const ImportGraph& graph_;
  const ImportPlan& plan_;
  std::ostream& out_;
  std::vector<std::uint32_t> first_of_rank_;  ///< in by_rank_
  std::vector<std::uint32_t> by_rank_;
  std::vector<std::uint32_t> first_required_;  ///< of each operation, in required_
  std::vector<Requirement> required_;
  std::vector<bool> is_named_;
  std::vector<bool> started_;
  std::vector<bool> ended_;
  std::vector<Requirement> open_;  ///< scratch
  std::size_t next_channel_ = 0;
  std::size_t waits_ = 0;  ///< names in the line under way
};

}  // namespace

void write_import(const ImportGraph& graph, const ImportPlan& plan, std::ostream& out) {
  Writer(graph, plan, out).write();
}

}  // namespace rvma::import_detail
