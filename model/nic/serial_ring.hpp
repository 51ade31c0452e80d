/// \file
/// Numbers that wrap at 2^32, compared by distance, and a growing ring of things that are numbered so.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace rvma {

/// How far `a` is ahead of `b` (negative: behind); right as long as they are less than 2^31 apart.
constexpr std::int32_t serial_distance(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b); }
/// The later of two.
constexpr std::uint32_t serial_later(std::uint32_t a, std::uint32_t b) { return serial_distance(a, b) > 0 ? a : b; }

/// Items numbered base(), base() + 1, ...; the storage doubles when it is full, so that a quiet peer costs little.
template <class T>
class SerialRing {
 public:
  std::uint32_t base() const { return base_; }
  /// Number after the last item.
  std::uint32_t end() const { return base_ + size_; }
  std::uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool contains(std::uint32_t number) const { return number - base_ < size_; }

  T& operator[](std::uint32_t number) {
    RVMA_ASSERT(contains(number), "number outside of its ring");
    return items_[number & mask()];
  }
  const T& operator[](std::uint32_t number) const { return const_cast<SerialRing&>(*this)[number]; }
  T& front() { return (*this)[base_]; }

  T& push_back(T item) {
    if (size_ == items_.size()) grow();
    ++size_;
    T& place = items_[(base_ + size_ - 1) & mask()];
    place = std::move(item);
    return place;
  }
  void pop_front() {
    RVMA_ASSERT(size_ != 0, "pop from an empty ring");
    items_[base_ & mask()] = T{};
    ++base_;
    --size_;
  }
  /// Empties the ring; the next item will be `base`.
  void restart(std::uint32_t base) {
    while (!empty()) pop_front();
    base_ = base;
  }
  std::size_t storage_bytes() const { return items_.size() * sizeof(T); }

 private:
  std::uint32_t mask() const { return static_cast<std::uint32_t>(items_.size()) - 1; }
  void grow() {
    std::vector<T> larger(items_.empty() ? 2 : 2 * items_.size());
    const auto larger_mask = static_cast<std::uint32_t>(larger.size()) - 1;
    for (std::uint32_t i = 0; i < size_; ++i)
      larger[(base_ + i) & larger_mask] = std::move(items_[(base_ + i) & mask()]);
    items_ = std::move(larger);
  }

  std::vector<T> items_;
  std::uint32_t base_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace rvma
