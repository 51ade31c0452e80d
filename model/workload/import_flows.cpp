#include "workload/import_flows.hpp"

#include <algorithm>

#include "base/value_text.hpp"

namespace rvma::import_detail {

FlowEnds add_flow(ImportGraph& graph, const Flow& flow) {
  ImportOperation op;
  op.kind = ImportKind::send;
  op.rank = flow.source;
  op.peer = flow.destination;
  op.tag = flow.tag;
  op.size = flow.size;
  op.has_start = flow.start.has_value();
  op.time = flow.start.value_or(Time::zero());
  op.place = flow.place;
  const std::uint32_t send = graph.add(op);
  op.kind = ImportKind::receive;
  op.rank = flow.destination;
  op.peer = flow.source;
  op.has_start = false;
  op.time = Time::zero();
  return {send, graph.add(op)};
}

void begin_at_zero(ImportGraph& graph, const ImportOptions& options) {
  Time first = Time::max();
  for (const ImportOperation& op : graph.operations) {
    if (op.has_start) first = std::min(first, op.time);
  }
  if (options.keep_start || first.is_never() || first == Time::zero()) return;
  for (ImportOperation& op : graph.operations) {
    if (op.has_start) op.time -= first;
  }
  graph.remarks.push_back("the first flow started at " + std::to_string(first.ps()) + "ps, which all are earlier here");
}

void PromisedCount::check(ImportLog& log) const {
  if (found_ == promised_) return;
  if (!is_given_) {
    return log.doubt(place_, "no header says how many " + plural_ + " there are",
                     "expected it in front of the first; the file has " + std::to_string(found_));
  }
  log.doubt(place_,
            "the header promises " + std::to_string(promised_) + " " + (promised_ == 1 ? noun_ : plural_) +
                ", the file has " + std::to_string(found_),
            "expected as many as promised");
}

}  // namespace rvma::import_detail
