#include "base/heap.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace rvma {

void reserve_heap(std::size_t bytes) {
#ifdef __GLIBC__
  constexpr std::uintptr_t kLargePage = std::uintptr_t{2} << 20U;
  constexpr int kLaterSteps = 16 << 20;
  constexpr std::size_t kForcesAStep = 120'000;  // more than a new heap has free, less than what is mapped apart
  constexpr std::size_t kMost = std::size_t{2047} << 20U;  // what mallopt takes is an int
  bytes = std::min(bytes, kMost);
  mallopt(M_TRIM_THRESHOLD, static_cast<int>(bytes));  // else the next free() gives it all back
  mallopt(M_TOP_PAD, static_cast<int>(bytes));
  void* volatile step = std::malloc(kForcesAStep);
  std::free(step);
  mallopt(M_TOP_PAD, kLaterSteps);
  if (bytes < 2 * kLargePage) return;
  char* const top = static_cast<char*>(sbrk(0));
  char* const end = top - reinterpret_cast<std::uintptr_t>(top) % kLargePage;
  const std::size_t whole = (bytes / kLargePage - 1) * kLargePage;  // what is surely ours
  madvise(end - whole, whole, MADV_HUGEPAGE);
#else
  static_cast<void>(bytes);
#endif
}

}  // namespace rvma
