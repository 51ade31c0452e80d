/// \file
/// Where a trace's text comes from: a file read in place, an unpacked spool, or memory; and the lines of it. Reading
/// needs a bounded cache, whatever the length of the text or of a line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace rvma::trace_detail {

/// Random access to the bytes of a text that does not change.
class TextSource {
 public:
  virtual ~TextSource() = default;
  virtual std::uint64_t size() const = 0;
  /// Reads up to `length` bytes at `offset`; returns how many. Less than asked only at the end or on an I/O error.
  virtual std::size_t read(std::uint64_t offset, char* to, std::size_t length) const = 0;
};

/// What a text is meant to be, for the messages about a file as a whole.
struct TextKind {
  std::string_view noun;      ///< "trace"
  std::string_view expected;  ///< what it begins with, "'rvma-trace 1'"
  bool is_binary = false;     ///< bytes and not lines of text: no mistake, and without a limit to a line's length
};
inline constexpr TextKind kTraceText{"trace", "'rvma-trace 1'"};

/// Opens a file ("-": standard input). A plain regular file is read in place; what is packed (gzip or zstd, told by
/// content) or cannot be read twice is spooled, unpacked, into a temporary file that has no name. `source` is the name
/// that positions quote. Errors stand at 1:1: cannot be read, a directory, empty, a Git-LFS pointer, packed data that
/// is cut off or damaged, binary; a line that is too long ends spooling at its place, since the text may have no end.
Result<std::unique_ptr<TextSource>> open_text(const std::string& path, const std::string& source,
                                              const TextKind& kind = kTraceText);
Result<std::unique_ptr<TextSource>> text_in_memory(std::string_view text, const std::string& source,
                                                   const TextKind& kind = kTraceText);

struct Line {
  std::string_view text;     ///< without its line end (LF or CRLF); lives until the reader moves
  std::uint64_t offset = 0;  ///< of its first byte in the text
  bool too_long = false;     ///< longer than kMaxLineBytes: `text` is only its begin
};

inline constexpr std::size_t kMaxLineBytes = 65536;

/// Lines of a text, forward, from any place where a line begins.
class LineReader {
 public:
  LineReader(const TextSource& source, std::size_t cache_bytes);
  void seek(std::uint64_t offset) { next_offset_ = offset; }
  /// Where the next line begins.
  std::uint64_t offset() const { return next_offset_; }
  /// False at the end of the text.
  bool next(Line& line);
  /// Gives the cache back; the reader stays usable.
  void release() {
    cached_ = 0;
    std::vector<char>{}.swap(cache_);
  }

 private:
  /// Makes the cache begin at `offset` and hold as much as fits.
  void fill(std::uint64_t offset);
  void skip_rest_of_line();

  const TextSource& source_;
  std::size_t cache_bytes_;
  std::vector<char> cache_;
  std::uint64_t cache_offset_ = 0;
  std::size_t cached_ = 0;
  std::uint64_t next_offset_ = 0;
};

}  // namespace rvma::trace_detail
