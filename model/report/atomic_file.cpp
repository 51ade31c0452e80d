#include "report/atomic_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace rvma {

AtomicFile::~AtomicFile() {
  if (temporary_.empty()) return;
  out_.close();
  std::remove(temporary_.c_str());
}

std::optional<Error> AtomicFile::failure(const std::string& what) const {
  return Error{Position{path_, 1, 1}, what + ": " + std::strerror(errno), "expected a place that can be written"};
}

std::optional<Error> AtomicFile::open() {
  temporary_ = path_ + ".partial." + std::to_string(::getpid());
  out_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (out_) return std::nullopt;
  temporary_.clear();
  return failure("cannot be created");
}

std::optional<Error> AtomicFile::commit() {
  out_.close();
  if (!out_) return failure("cannot be written");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return failure("cannot be renamed into place");
  temporary_.clear();
  return std::nullopt;
}

}  // namespace rvma
