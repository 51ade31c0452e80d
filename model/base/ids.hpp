/// \file
/// Strong identifiers: an id of one kind cannot be passed where another is meant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace rvma {

template <class Tag, class Representation>
class StrongId {
 public:
  using representation = Representation;
  constexpr StrongId() = default;
  explicit constexpr StrongId(Representation value) : value_(value) {}
  constexpr Representation value() const { return value_; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }
  friend constexpr bool operator==(StrongId a, StrongId b) { return a.value_ == b.value_; }
  friend constexpr bool operator!=(StrongId a, StrongId b) { return a.value_ != b.value_; }
  friend constexpr bool operator<(StrongId a, StrongId b) { return a.value_ < b.value_; }
  friend std::size_t hash_value(StrongId id) { return std::hash<Representation>{}(id.value_); }

 private:
  Representation value_{};
};

/// One host with one RNIC, 0..N-1.
using NodeId = StrongId<struct NodeTag, std::uint32_t>;
/// One switch of the fabric, 0..S-1.
using SwitchId = StrongId<struct SwitchTag, std::uint32_t>;
/// One process of the trace; rank r lives on node r / ranks_per_node.
using RankId = StrongId<struct RankTag, std::uint32_t>;
/// Process number within its node: rank % ranks_per_node.
using Pid = StrongId<struct PidTag, std::uint16_t>;
/// The 64-bit virtual address that a sender names.
using Mailbox = StrongId<struct MailboxTag, std::uint64_t>;
/// Place of a window's context on the NIC: the translation table's value.
using SlotId = StrongId<struct SlotTag, std::uint16_t>;
/// A window of a NIC, wherever its context lies.
using WindowId = StrongId<struct WindowTag, std::uint32_t>;
/// On-chip descriptor of one posted buffer.
using BufferId = StrongId<struct BufferTag, std::uint32_t>;
/// Message number, consecutive within a packet-delivery context.
using MessageId = StrongId<struct MessageTag, std::uint32_t>;
/// Position of an epoch within its window, from 0.
using Epoch = StrongId<struct EpochTag, std::uint64_t>;
/// Byte address in a host's physical memory.
using PhysicalAddress = StrongId<struct PhysicalTag, std::uint64_t>;
/// Byte address in one process's address space.
using VirtualAddress = StrongId<struct VirtualTag, std::uint64_t>;

/// A vector that takes only its own kind of id as an index.
template <class Id, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t size) : items_(size) {}
  IdVector(std::size_t size, const T& value) : items_(size, value) {}
  T& operator[](Id id) { return items_[id.index()]; }
  const T& operator[](Id id) const { return items_[id.index()]; }
  std::size_t size() const { return items_.size(); }
  bool contains(Id id) const { return id.index() < items_.size(); }
  void resize(std::size_t size) { items_.resize(size); }
  Id push_back(T value) {
    items_.push_back(std::move(value));
    return Id{static_cast<typename Id::representation>(items_.size() - 1)};
  }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<T> items_;
};

}  // namespace rvma

template <class Tag, class Representation>
struct std::hash<rvma::StrongId<Tag, Representation>> {
  std::size_t operator()(rvma::StrongId<Tag, Representation> id) const noexcept {
    return std::hash<Representation>{}(id.value());
  }
};
