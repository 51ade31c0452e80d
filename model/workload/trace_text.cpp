#include "workload/trace_text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace rvma::trace_detail {
namespace {

constexpr std::size_t kChunkBytes = 64 * 1024;
/// How much of the text is looked at to tell what kind of file it is.
constexpr std::size_t kProbeBytes = 4096;

Error whole_file_error(const std::string& source, std::string what, std::string expected) {
  return Error{Position{source, 1, 1}, std::move(what), std::move(expected)};
}

std::string errno_text(int number) { return std::generic_category().message(number); }

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// read(2) that is not disturbed by signals and returns short only at the end; -1 on error (errno).
ssize_t read_all(int fd, char* to, std::size_t length) {
  std::size_t done = 0;
  while (done < length) {
    const ssize_t got = ::read(fd, to + done, length - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

bool write_all(int fd, const char* from, std::size_t length) {
  while (length > 0) {
    const ssize_t put = ::write(fd, from, length);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    from += put;
    length -= static_cast<std::size_t>(put);
  }
  return true;
}

class FileText final : public TextSource {
 public:
  FileText(FileDescriptor file, std::uint64_t size) : file_(std::move(file)), size_(size) {}
  std::uint64_t size() const override { return size_; }
  std::size_t read(std::uint64_t offset, char* to, std::size_t length) const override {
    std::size_t done = 0;
    while (done < length) {
      const ssize_t got = ::pread(file_.get(), to + done, length - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

 private:
  FileDescriptor file_;
  std::uint64_t size_;
};

class MemoryText final : public TextSource {
 public:
  explicit MemoryText(std::string_view text) : text_(text) {}
  std::uint64_t size() const override { return text_.size(); }
  std::size_t read(std::uint64_t offset, char* to, std::size_t length) const override {
    if (offset >= text_.size()) return 0;
    return text_.copy(to, length, static_cast<std::size_t>(offset));
  }

 private:
  std::string text_;
};

enum class Packing : std::uint8_t { none, gzip, zstd };

Packing packing_of(std::string_view begin) {
  using std::string_view_literals::operator""sv;
  if (begin.substr(0, 2) == "\x1f\x8b"sv) return Packing::gzip;
  if (begin.substr(0, 4) == "\x28\xb5\x2f\xfd"sv) return Packing::zstd;
  // A skippable frame may stand in front (0x184D2A50 to ...5F).
  if (begin.size() >= 4 && (static_cast<unsigned char>(begin[0]) & 0xf0U) == 0x50 &&
      begin.substr(1, 3) == "\x2a\x4d\x18"sv)
    return Packing::zstd;
  return Packing::none;
}

/// The spooled text on its way to its file. A line that is too long ends it: what has no line ends may have no end.
class Spool {
 public:
  Spool(int to, bool has_lines) : to_(to), has_lines_(has_lines) {}
  /// False: could not be written (errno), or too_long().
  bool write(const char* from, std::size_t length) {
    const char* const end = from + length;
    for (const char* at = has_lines_ ? from : end; at < end;) {
      const void* const found = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
      const char* const line_end = found == nullptr ? end : static_cast<const char*>(found);
      line_bytes_ += static_cast<std::uint64_t>(line_end - at);
      if (line_bytes_ > kMaxLineBytes) return false;
      if (found == nullptr) break;
      at = line_end + 1;
      line_bytes_ = 0;
      ++line_;
    }
    return write_all(to_, from, length);
  }
  bool too_long() const { return line_bytes_ > kMaxLineBytes; }
  /// Number of the line under way.
  std::uint64_t line() const { return line_; }

 private:
  int to_;
  bool has_lines_;
  std::uint64_t line_ = 1;
  std::uint64_t line_bytes_ = 0;
};

/// Takes the packed bytes piece by piece and writes the text to a file.
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  /// False: the data is damaged, or the text could not be written.
  virtual bool consume(std::string_view packed) = 0;
  /// Whether the data so far ends where packed data may end.
  virtual bool complete() const = 0;
};

class Copy final : public Unpacker {
 public:
  explicit Copy(Spool& to) : to_(to) {}
  bool consume(std::string_view packed) override { return to_.write(packed.data(), packed.size()); }
  bool complete() const override { return true; }

 private:
  Spool& to_;
};

class Gunzip final : public Unpacker {
 public:
  explicit Gunzip(Spool& to) : to_(to), out_(kChunkBytes) {
    constexpr int kGzipWindowBits = 15 + 16;
    RVMA_ASSERT(inflateInit2(&stream_, kGzipWindowBits) == Z_OK, "zlib has no memory");
  }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;
  ~Gunzip() override { inflateEnd(&stream_); }

  bool consume(std::string_view packed) override {
    // zlib's interface is not const-correct; it does not write to its input.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    bool output_full = false;
    while (stream_.avail_in > 0 || output_full) {
      if (ended_) {  // another member follows
        inflateReset(&stream_);
        ended_ = false;
      }
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) return false;
      if (!to_.write(out_.data(), out_.size() - stream_.avail_out)) return false;
      ended_ = status == Z_STREAM_END;
      output_full = stream_.avail_out == 0 && !ended_;
    }
    return true;
  }
  bool complete() const override { return ended_; }

 private:
  Spool& to_;
  std::vector<char> out_;
  z_stream stream_{};
  bool ended_ = false;
};

class Unzstd final : public Unpacker {
 public:
  explicit Unzstd(Spool& to) : to_(to), out_(ZSTD_DStreamOutSize()), stream_(ZSTD_createDStream()) {
    RVMA_ASSERT(stream_ != nullptr, "libzstd has no memory");
  }
  Unzstd(const Unzstd&) = delete;
  Unzstd& operator=(const Unzstd&) = delete;
  ~Unzstd() override { ZSTD_freeDStream(stream_); }

  bool consume(std::string_view packed) override {
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    bool output_full = false;
    while (in.pos < in.size || output_full) {
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      const std::size_t left = ZSTD_decompressStream(stream_, &out, &in);
      if (ZSTD_isError(left) != 0) return false;
      if (!to_.write(out_.data(), out.pos)) return false;
      ended_ = left == 0;
      output_full = out.pos == out.size && !ended_;
    }
    return true;
  }
  bool complete() const override { return ended_; }

 private:
  Spool& to_;
  std::vector<char> out_;
  ZSTD_DStream* stream_;
  bool ended_ = false;
};

std::unique_ptr<Unpacker> make_unpacker(Packing packing, Spool& to) {
  switch (packing) {
    case Packing::gzip:
      return std::make_unique<Gunzip>(to);
    case Packing::zstd:
      return std::make_unique<Unzstd>(to);
    case Packing::none:
      break;
  }
  return std::make_unique<Copy>(to);
}

const char* packing_name(Packing packing) { return packing == Packing::gzip ? "gzip" : "zstd"; }

/// A file without a name in the directory for temporary files; it is gone when it is closed.
Result<FileDescriptor> make_spool(const std::string& source, const TextKind& kind) {
  std::error_code ignored;
  std::string name = (std::filesystem::temp_directory_path(ignored) / "rvma-trace-XXXXXX").string();
  FileDescriptor file{::mkstemp(name.data())};
  if (!file.valid()) {
    return whole_file_error(
        source, "cannot spool the " + std::string(kind.noun) + " to " + rvma::quoted(name) + ": " + errno_text(errno),
        "set TMPDIR to a directory with room");
  }
  ::unlink(name.c_str());
  return file;
}

std::optional<Error> judge_begin(std::string_view begin, const std::string& source, const TextKind& kind);

Result<std::unique_ptr<TextSource>> spool(int from, const std::string& source, const TextKind& kind) {
  // 1. What is it? The first bytes tell.
  std::vector<char> chunk(kChunkBytes);
  ssize_t got = read_all(from, chunk.data(), chunk.size());
  const Packing packing = packing_of({chunk.data(), got > 0 ? static_cast<std::size_t>(got) : 0});
  if (packing == Packing::none && got > 0) {
    const std::string_view begin(chunk.data(), std::min(static_cast<std::size_t>(got), kProbeBytes));
    if (std::optional<Error> error = judge_begin(begin, source, kind)) return std::move(*error);
  }
  // 2. Unpack all of it into a nameless file.
  auto file = make_spool(source, kind);
  if (!file) return file.error();
  Spool text(file->get(), !kind.is_binary);
  const std::unique_ptr<Unpacker> unpacker = make_unpacker(packing, text);
  for (; got > 0; got = read_all(from, chunk.data(), chunk.size())) {
    errno = 0;
    if (unpacker->consume({chunk.data(), static_cast<std::size_t>(got)})) continue;
    if (text.too_long()) {
      return Error{Position{source, text.line(), 1}, "the line is too long",
                   "expected at most " + std::to_string(kMaxLineBytes) + " bytes"};
    }
    if (errno != 0)
      return whole_file_error(source, "cannot spool the " + std::string(kind.noun) + ": " + errno_text(errno),
                              "set TMPDIR to a directory with room");
    return whole_file_error(source, std::string("damaged ") + packing_name(packing) + " data",
                            "expected an intact file");
  }
  if (got < 0) return whole_file_error(source, "cannot read: " + errno_text(errno), "expected a readable file");
  if (!unpacker->complete()) {
    return whole_file_error(source, std::string("truncated ") + packing_name(packing) + " file",
                            "expected the end of the packed data");
  }
  struct stat status {};
  if (::fstat(file->get(), &status) != 0) return whole_file_error(source, "cannot spool: " + errno_text(errno), "");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  return std::unique_ptr<TextSource>(std::make_unique<FileText>(std::move(*file), size));
}

bool is_blank_text(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

/// Mistakes that concern the file as a whole and would otherwise give one error a line.
std::optional<Error> judge_content(const TextSource& text, const std::string& source, const TextKind& kind) {
  std::array<char, kProbeBytes> probe{};
  const std::string_view begin(probe.data(), text.read(0, probe.data(), probe.size()));
  const std::string expected = "expected " + std::string(kind.expected);
  if (text.size() == 0) return whole_file_error(source, "the file is empty", expected);
  if (text.size() <= probe.size() && is_blank_text(begin))
    return whole_file_error(source, "the file holds only blanks", expected);
  return judge_begin(begin, source, kind);
}

/// The same, of what can be told from the first bytes.
std::optional<Error> judge_begin(std::string_view begin, const std::string& source, const TextKind& kind) {
  if (begin.substr(0, 42) == "version https://git-lfs.github.com/spec/v1") {
    return whole_file_error(source, "this is a Git-LFS pointer, not the file itself",
                            "fetch the content first with 'git lfs pull'");
  }
  if (kind.is_binary) return std::nullopt;
  const auto is_binary = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\v';
  };
  const auto odd = static_cast<std::size_t>(std::count_if(begin.begin(), begin.end(), is_binary));
  if (begin.find('\0') != std::string_view::npos || odd > begin.size() / 16) {
    return whole_file_error(source, "this is a binary file",
                            "expected the text of a " + std::string(kind.noun) + ", plain or packed as .gz or .zst");
  }
  return std::nullopt;
}

Result<std::unique_ptr<TextSource>> judged(Result<std::unique_ptr<TextSource>> text, const std::string& source,
                                           const TextKind& kind) {
  if (!text) return text;
  if (std::optional<Error> error = judge_content(**text, source, kind)) return std::move(*error);
  return text;
}

}  // namespace

Result<std::unique_ptr<TextSource>> open_text(const std::string& path, const std::string& source,
                                              const TextKind& kind) {
  const std::string noun(kind.noun);
  if (path == "-") return judged(spool(STDIN_FILENO, source, kind), source, kind);
  // 1. The file itself.
  FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file.valid()) {
    return whole_file_error(source, "cannot open the " + noun + ": " + errno_text(errno), "expected a readable file");
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    return whole_file_error(source, "cannot open the " + noun + ": " + errno_text(errno), "expected a readable file");
  if (S_ISDIR(status.st_mode)) return whole_file_error(source, "this is a directory", "expected a " + noun + " file");
  // 2. A pipe cannot be read twice; packed text cannot be read from the middle.
  if (!S_ISREG(status.st_mode)) return judged(spool(file.get(), source, kind), source, kind);
  std::array<char, 4> magic{};
  const ssize_t got = ::pread(file.get(), magic.data(), magic.size(), 0);
  if (got < 0)
    return whole_file_error(source, "cannot read the " + noun + ": " + errno_text(errno), "expected a readable file");
  if (packing_of({magic.data(), static_cast<std::size_t>(got)}) != Packing::none)
    return judged(spool(file.get(), source, kind), source, kind);
  // 3. Plain text is read where it lies.
  const auto size = static_cast<std::uint64_t>(status.st_size);
  return judged(std::unique_ptr<TextSource>(std::make_unique<FileText>(std::move(file), size)), source, kind);
}

Result<std::unique_ptr<TextSource>> text_in_memory(std::string_view text, const std::string& source,
                                                   const TextKind& kind) {
  return judged(std::unique_ptr<TextSource>(std::make_unique<MemoryText>(text)), source, kind);
}

LineReader::LineReader(const TextSource& source, std::size_t cache_bytes)
    : source_(source),
      cache_bytes_(static_cast<std::size_t>(
          std::clamp<std::uint64_t>(source.size(), 1, std::max<std::size_t>(cache_bytes, 1)))) {}

void LineReader::fill(std::uint64_t offset) {
  if (cache_.size() < cache_bytes_) cache_.resize(cache_bytes_);
  // What is cached already is moved, not read again: a line that straddles the cache costs one copy.
  std::size_t kept = 0;
  if (offset >= cache_offset_ && offset < cache_offset_ + cached_) {
    const auto skip = static_cast<std::size_t>(offset - cache_offset_);
    kept = cached_ - skip;
    std::memmove(cache_.data(), cache_.data() + skip, kept);
  }
  cache_offset_ = offset;
  cached_ = kept + source_.read(offset + kept, cache_.data() + kept, cache_.size() - kept);
}

bool LineReader::next(Line& line) {
  if (next_offset_ >= source_.size()) return false;
  if (next_offset_ < cache_offset_ || next_offset_ >= cache_offset_ + cached_) fill(next_offset_);
  for (;;) {
    const auto begin = static_cast<std::size_t>(next_offset_ - cache_offset_);
    if (begin >= cached_) return false;  // the file became shorter
    const char* const first = cache_.data() + begin;
    const std::size_t available = cached_ - begin;
    const void* const found = std::memchr(first, '\n', available);
    const bool at_end = cache_offset_ + cached_ >= source_.size();
    if (found == nullptr && !at_end && available <= kMaxLineBytes) {
      if (begin == 0 && available == cache_.size()) cache_.resize(std::min(2 * cache_.size(), kMaxLineBytes + 2));
      const std::size_t before = available;
      fill(next_offset_);
      if (cached_ == before) return false;  // an I/O error, or the file became shorter
      continue;
    }
    std::size_t length =
        found == nullptr ? available : static_cast<std::size_t>(static_cast<const char*>(found) - first);
    line.offset = next_offset_;
    line.too_long = length > kMaxLineBytes;
    next_offset_ += length + (found == nullptr ? 0 : 1);
    if (line.too_long) {
      line.text = {first, std::min<std::size_t>(length, 64)};
      if (found == nullptr && next_offset_ < source_.size()) skip_rest_of_line();
      return true;
    }
    if (length > 0 && first[length - 1] == '\r') --length;
    line.text = {first, length};
    return true;
  }
}

void LineReader::skip_rest_of_line() {
  // Its own small buffer: the begin of the line in the cache is still quoted.
  std::array<char, 4096> piece{};
  while (next_offset_ < source_.size()) {
    const std::size_t got = source_.read(next_offset_, piece.data(), piece.size());
    if (got == 0) {
      next_offset_ = source_.size();
      return;
    }
    const void* const found = std::memchr(piece.data(), '\n', got);
    if (found != nullptr) {
      next_offset_ += static_cast<std::size_t>(static_cast<const char*>(found) - piece.data()) + 1;
      return;
    }
    next_offset_ += got;
  }
}

}  // namespace rvma::trace_detail
