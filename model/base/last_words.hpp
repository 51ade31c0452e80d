/// \file
/// What still happens when a broken invariant ends the process (RVMA_ASSERT): records of the run are saved.
#pragma once

#include <functional>
#include <string>

#include "base/error.hpp"

namespace rvma {

/// Speaks once if an assertion fails while this object lives, behind the message on stderr. The process has one at a
/// time. A failure within it is final.
class LastWords {
 public:
  /// `speak` gets the failure's message.
  explicit LastWords(std::function<void(const std::string& why)> speak);
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

 private:
  friend void detail::assertion_failed(const char* condition, const char* file, int line, const std::string& message);
  std::function<void(const std::string&)> speak_;
};

}  // namespace rvma
