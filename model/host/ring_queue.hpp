/// \file
/// A FIFO over one block of memory that doubles when it is full: no allocation once it has reached its working size.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace rvma {

/// `first_capacity`, a power of two: items that the first block holds; there is none before the first item.
template <class T, std::size_t first_capacity = 8>
class RingQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  /// Position 0 is the oldest.
  T& operator[](std::size_t position) { return items_[(head_ + position) & (items_.size() - 1)]; }
  const T& operator[](std::size_t position) const { return items_[(head_ + position) & (items_.size() - 1)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }

  void push_back(T item) {
    if (size_ == items_.size()) grow();
    ++size_;
    back() = std::move(item);
  }
  T pop_front() {
    T item = std::move(front());
    head_ = (head_ + 1) & (items_.size() - 1);
    --size_;
    return item;
  }
  /// Inserts behind the last item that `item` does not precede; cheap if that is near the back.
  template <class Precedes>
  void insert_from_back(T item, Precedes precedes) {
    push_back(std::move(item));
    for (std::size_t i = size_ - 1; i > 0 && precedes((*this)[i], (*this)[i - 1]); --i) {
      std::swap((*this)[i], (*this)[i - 1]);
    }
  }

 private:
  static_assert(first_capacity > 0 && (first_capacity & (first_capacity - 1)) == 0, "a power of two");

  void grow() {
    std::vector<T> larger(items_.empty() ? first_capacity : items_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    items_ = std::move(larger);
    head_ = 0;
  }

  std::vector<T> items_;  ///< its size is a power of two (or none)
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace rvma
