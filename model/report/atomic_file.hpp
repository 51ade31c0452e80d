/// \file
/// A result file that appears whole or not at all: it is written under a temporary name beside it and renamed at the
/// end. A symbolic link stays one, and the file that it names is replaced. What is no file (a device, a pipe) is
/// written as it is.
#pragma once

#include <fstream>
#include <optional>
#include <ostream>
#include <string>

#include "base/error.hpp"

namespace rvma {

class AtomicFile {
 public:
  explicit AtomicFile(std::string path) : path_(std::move(path)) {}
  /// What was not committed is removed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  std::optional<Error> open();
  std::ostream& stream() { return out_; }
  /// Flushes, checks that everything was written, and gives the file its name.
  std::optional<Error> commit();

 private:
  std::optional<Error> failure(const std::string& what) const;

  std::string path_;
  std::string target_;     ///< what the temporary file becomes
  std::string temporary_;  ///< empty: none
  std::ofstream out_;
};

}  // namespace rvma
