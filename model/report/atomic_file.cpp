#include "report/atomic_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace rvma {
namespace {

namespace fs = std::filesystem;

/// Where `path` leads, through links to what is not there yet as well.
fs::path followed(fs::path path) {
  constexpr int kMostLinks = 40;  // as Linux
  std::error_code failure;
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, failure); ++i) {
    const fs::path next = fs::read_symlink(path, failure);
    if (failure) break;
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return path;
}

}  // namespace

AtomicFile::~AtomicFile() {
  if (temporary_.empty()) return;
  out_.close();
  std::remove(temporary_.c_str());
}

std::optional<Error> AtomicFile::failure(const std::string& what) const {
  return Error{Position{path_, 1, 1}, what + ": " + std::strerror(errno), "expected a place that can be written"};
}

std::optional<Error> AtomicFile::open() {
  std::error_code failed;
  const fs::file_status status = fs::status(path_, failed);
  if (fs::is_directory(status)) {
    errno = EISDIR;
    return failure("cannot be created");
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    out_.open(path_, std::ios::binary);
    return out_ ? std::nullopt : std::optional<Error>{failure("cannot be opened")};
  }
  target_ = followed(path_).string();
  temporary_ = target_ + ".partial." + std::to_string(::getpid());
  out_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (out_) return std::nullopt;
  temporary_.clear();
  return failure("cannot be created");
}

std::optional<Error> AtomicFile::commit() {
  out_.close();
  if (!out_) return failure("cannot be written");
  if (temporary_.empty()) return std::nullopt;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) return failure("cannot be renamed into place");
  temporary_.clear();
  return std::nullopt;
}

}  // namespace rvma
