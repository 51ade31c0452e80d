/// \file
/// Asks the machine for a heap in large pages: thousands of nodes lie scattered over gigabytes, and with small pages a
/// good part of the time goes into finding where.
#pragma once

#include <cstddef>

namespace rvma {

/// Reserves about `bytes` of the heap, of which nothing is resident before it is used, and asks for large pages there.
/// A wish: where the machine has none, or another C library, nothing changes. Once, before the model is built.
void reserve_heap(std::size_t bytes);

}  // namespace rvma
