/// \file
/// Numbered places that are taken and given back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.hpp"

namespace rvma {

/// Grows as places are needed, a few at a time: thousands of NICs hold such tables, and one that doubles leaves half of
/// itself and all its earlier sizes behind. A place keeps what was in it when it is given back, with the capacity of
/// its containers, and never moves. The place given back last is taken first: it is warm.
template <class T>
class SlotTable {
 public:
  using Index = std::uint32_t;

  Index take() {
    if (free_.empty()) {
      if (made_ % kChunk == 0) {
        chunks_.push_back(std::make_unique<std::array<T, kChunk>>());
        // Room to take every place back without an allocation then.
        free_.reserve(chunks_.capacity() * kChunk);
      }
      return static_cast<Index>(made_++);
    }
    const Index index = free_.back();
    free_.pop_back();
    return index;
  }
  /// `index` must be taken.
  void give_back(Index index) {
    RVMA_ASSERT(index < made_ && free_.size() < made_, "a place was given back that nobody has");
    free_.push_back(index);
  }
  T& operator[](Index index) { return (*chunks_[index / kChunk])[index % kChunk]; }
  const T& operator[](Index index) const { return (*chunks_[index / kChunk])[index % kChunk]; }
  /// Places ever made, taken or not: every index is below it.
  std::size_t made() const { return made_; }
  std::size_t taken() const { return made_ - free_.size(); }

 private:
  static constexpr std::size_t kChunk = 8;

  std::vector<std::unique_ptr<std::array<T, kChunk>>> chunks_;
  std::vector<Index> free_;
  std::size_t made_ = 0;
};

}  // namespace rvma
