/// \file
/// What Verilator's FST writer does not tell: that a disk is full.
#pragma once

#include <string>

namespace rvma {

/// True if the file's blocks (gtkwave/fstapi.h: a tag, then a length of 64 bits that counts itself) end where the file
/// does, none is unfinished, and those that are written last - the hierarchy and the geometry - are there. A disk that
/// fills while waves are written leaves a file that fails this.
bool is_whole_fst_file(const std::string& path);

/// The FST writer maps its files, and temporary ones beside them, into memory, where a full disk is the signal SIGBUS.
/// While an object of this class lives, that ends the program at once with a message on stderr and exit status 1.
class FullDiskGuard {
 public:
  FullDiskGuard();
  ~FullDiskGuard();
  FullDiskGuard(const FullDiskGuard&) = delete;
  FullDiskGuard& operator=(const FullDiskGuard&) = delete;
};

}  // namespace rvma
