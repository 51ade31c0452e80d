/// \file
/// What the tests of the host share: a pool of transactions as a DMA engine has one, and a script of timed steps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <systemc>
#include <tlm>
#include <utility>
#include <vector>

#include "base/component.hpp"
#include "base/units.hpp"
#include "host/interfaces.hpp"

namespace rvma::test {

/// A pooled transaction with its data and its extension, freed to the pool by the last release().
class TransactionPool : public tlm::tlm_mm_interface {
 public:
  struct Item {
    BurstExtension burst;  // first: the payload's destructor asks it
    tlm::tlm_generic_payload payload;
    std::vector<std::uint8_t> data;
  };

  ~TransactionPool() override = default;
  TransactionPool() = default;
  TransactionPool(const TransactionPool&) = delete;
  TransactionPool& operator=(const TransactionPool&) = delete;

  /// One reference is the caller's.
  Item& make(tlm::tlm_command command, std::uint64_t address, std::vector<std::uint8_t> data, bool relaxed = false) {
    items_.push_back(std::make_unique<Item>());
    Item& item = *items_.back();
    item.data = std::move(data);
    item.burst.relaxed_ordering = relaxed;
    item.payload.set_mm(this);
    item.payload.acquire();
    item.payload.set_extension(&item.burst);
    item.payload.set_command(command);
    item.payload.set_address(address);
    item.payload.set_data_ptr(item.data.data());
    item.payload.set_data_length(static_cast<unsigned>(item.data.size()));
    item.payload.set_streaming_width(static_cast<unsigned>(item.data.size()));
    return item;
  }
  void free(tlm::tlm_generic_payload* /*payload*/) override { ++freed_; }
  std::size_t made() const { return items_.size(); }
  std::size_t freed() const { return freed_; }

 private:
  std::vector<std::unique_ptr<Item>> items_;
  std::size_t freed_ = 0;
};

/// Calls `step` at `when` (after what the model itself does at that time).
inline void at(Time when, std::function<void()> step) {
  sc_core::sc_spawn([when, step = std::move(step)] {
    sc_core::wait(SimContext::to_sc(when - SimContext::now()));
    for (int i = 0; i < 4; ++i) sc_core::wait(sc_core::SC_ZERO_TIME);
    step();
  });
}

inline std::vector<std::uint8_t> pattern(std::size_t bytes, std::uint64_t seed) {
  std::vector<std::uint8_t> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::uint8_t>(seed * 131 + i * 7 + 1);
  return data;
}

}  // namespace rvma::test
