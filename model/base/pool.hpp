/// \file
/// Free-list pool: objects are recycled last-in first-out, so that the packet path touches warm memory only.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace rvma {

/// Owns every object it ever made; must outlive their handles. `T` needs a default constructor and `void recycle()`,
/// which brings it back to its first state while keeping the capacity of its containers.
template <class T>
class Pool {
 public:
  struct Return {
    Pool* pool = nullptr;
    void operator()(T* object) const { pool->release(object); }
  };
  using Handle = std::unique_ptr<T, Return>;

  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() = default;

  Handle acquire() {
    if (free_.empty()) {
      owned_.push_back(std::make_unique<T>());
      // Room to take everything back without an allocation then. It grows as owned_ does: an exact size would be
      // allocated anew for every object that is made.
      free_.reserve(owned_.capacity());
      return Handle{owned_.back().get(), Return{this}};
    }
    T* object = free_.back();
    free_.pop_back();
    return Handle{object, Return{this}};
  }
  std::size_t made() const { return owned_.size(); }
  std::size_t in_use() const { return owned_.size() - free_.size(); }

 private:
  void release(T* object) {
    object->recycle();
    free_.push_back(object);
  }

  std::vector<std::unique_ptr<T>> owned_;
  std::vector<T*> free_;
};

}  // namespace rvma
