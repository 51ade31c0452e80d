/// \file
/// What the benchmarks share: a run of `gen stream`, wall time, and processes of their own (SystemC elaborates once).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nic/table_unit.hpp"
#include "platform/config.hpp"

namespace rvma::bench {

struct Measurement {
  std::uint64_t packets = 0;  ///< or what else is counted
  std::uint64_t wall_ns = 0;
  std::uint64_t activations = 0;
  double packets_per_s() const {
    return wall_ns == 0 ? 0 : 1e9 * static_cast<double>(packets) / static_cast<double>(wall_ns);
  }
};

std::uint64_t wall_ns_of(const std::function<void()>& work);

/// `rvma gen stream` of `packets` packets of 4 KiB, `packets_per_put` to a put.
Measurement measure_stream(std::uint64_t packets, std::uint64_t packets_per_put, PayloadMode payload,
                           const TableUnitFactory& make_table = &ModelTableUnit::make);

/// Runs `measure` in a child process. A failure ends this one with status 1.
Measurement in_child(const std::function<Measurement()>& measure);

/// The faster one stays in `best`.
void keep_best(Measurement& best, const Measurement& now);

/// Number behind `name` among the arguments.
std::uint64_t option(const std::vector<std::string>& arguments, const std::string& name, std::uint64_t otherwise);

}  // namespace rvma::bench
