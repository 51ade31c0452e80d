/// \file
/// What the formats that list flows have in common: a flow is one message that starts at a time of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "workload/import_graph.hpp"

namespace rvma::import_detail {

struct Flow {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint32_t tag = 0;
  std::uint64_t size = 0;     ///< bytes
  std::optional<Time> start;  ///< none: when what it depends on has ended
  ImportPlace place;
};

/// Its operations.
struct FlowEnds {
  std::uint32_t send = 0;
  std::uint32_t receive = 0;
};

FlowEnds add_flow(ImportGraph& graph, const Flow& flow);

/// Unless the user wants the flows' own times: the first of them starts at 0, the others as much earlier. Says in a
/// remark what was subtracted.
void begin_at_zero(ImportGraph& graph, const ImportOptions& options);

/// Counts what a header promises against what the body has.
class PromisedCount {
 public:
  PromisedCount(std::string noun, std::string plural) : noun_(std::move(noun)), plural_(std::move(plural)) {}
  void promise(std::uint64_t count, const Position& place) {
    promised_ = count;
    place_ = place;
    is_given_ = true;
  }
  bool is_given() const { return is_given_; }
  std::uint64_t promised() const { return promised_; }
  std::uint64_t found() const { return found_; }
  bool is_complete() const { return found_ == promised_; }
  /// `place`: where check() points if nothing was promised.
  void count(const Position& place) {
    if (found_++ == 0 && !is_given_) place_ = place;
  }
  /// At the end: as many as promised, or a mistake where that was said.
  void check(ImportLog& log) const;

 private:
  std::string noun_;
  std::string plural_;
  std::uint64_t promised_ = 0;
  std::uint64_t found_ = 0;
  Position place_;
  bool is_given_ = false;
};

}  // namespace rvma::import_detail
