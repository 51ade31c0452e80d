/// \file
/// 128-bit integers for exact intermediate products. A compiler extension of GCC and Clang; not for interfaces.
#pragma once

namespace rvma::detail {

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

}  // namespace rvma::detail
