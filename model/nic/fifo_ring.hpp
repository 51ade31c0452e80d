/// \file
/// FIFO in one block of memory that is reused for ever: no allocation once it has reached its greatest length.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace rvma {

/// `T` needs a default constructor and a move assignment.
template <class T>
class FifoRing {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  /// Entry `index` from the front.
  T& operator[](std::size_t index) { return slots_[(head_ + index) & (slots_.size() - 1)]; }
  T& front() { return slots_[head_]; }
  T& back() { return (*this)[size_ - 1]; }

  std::size_t storage_bytes() const { return slots_.size() * sizeof(T); }
  void push(T item) {
    if (size_ == slots_.size()) grow();
    ++size_;
    back() = std::move(item);
  }
  T pop() {
    RVMA_ASSERT(size_ > 0, "pop from an empty queue");
    T item = std::move(slots_[head_]);
    head_ = (head_ + 1) & (slots_.size() - 1);
    --size_;
    return item;
  }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 4 : 2 * slots_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    slots_ = std::move(larger);
    head_ = 0;
  }

  std::vector<T> slots_;  ///< a power of two of them
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace rvma
