#include "rtl/verilated/fst_file.hpp"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <string_view>

namespace rvma {
namespace {

// Tags of fstapi.h, which is not ours to include: it has no C++ form of its own.
constexpr int kHeader = 0;
constexpr int kGeometry = 3;
constexpr int kHierarchy = 4;
constexpr int kHierarchyLz4 = 6;
constexpr int kHierarchyLz4Twice = 7;
constexpr int kUnfinished = 255;

/// Big-endian; 0, which no block has, if the file ends.
std::uint64_t read_length(std::ifstream& file) {
  std::array<char, 8> bytes{};
  if (!file.read(bytes.data(), bytes.size())) return 0;
  std::uint64_t length = 0;
  for (const char byte : bytes) length = length << 8U | static_cast<std::uint8_t>(byte);
  return length;
}

int guards = 0;
struct sigaction before_guards {};

/// Nothing here but what a signal handler may call.
extern "C" void end_at_full_disk(int /*signal*/) {
  constexpr std::string_view kMessage =
      "error: --wave: a wave file could not be written: its disk, or that of temporary files, is full\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(1);
}

}  // namespace

FullDiskGuard::FullDiskGuard() {
  if (guards++ != 0) return;
  struct sigaction action {};
  action.sa_handler = &end_at_full_disk;
  ::sigaction(SIGBUS, &action, &before_guards);
}

FullDiskGuard::~FullDiskGuard() {
  if (--guards == 0) ::sigaction(SIGBUS, &before_guards, nullptr);
}

bool is_whole_fst_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return false;
  const auto size = static_cast<std::uint64_t>(file.tellg());
  bool has_header = false;
  bool has_geometry = false;
  bool has_hierarchy = false;
  for (std::uint64_t at = 0; at < size;) {
    file.seekg(static_cast<std::streamoff>(at));
    const int tag = file.get();
    const std::uint64_t length = read_length(file);
    if (tag == kUnfinished || length < sizeof length || length > size - at - 1) return false;
    if (at == 0) has_header = tag == kHeader;
    has_geometry = has_geometry || tag == kGeometry;
    has_hierarchy = has_hierarchy || tag == kHierarchy || tag == kHierarchyLz4 || tag == kHierarchyLz4Twice;
    at += 1 + length;
  }
  return has_header && has_geometry && has_hierarchy;
}

}  // namespace rvma
