/// \file
/// Page translations held on the NIC: lines of eight page addresses, as they are fetched from a buffer's page list in
/// host memory. Plain C++, no time in it.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.hpp"
#include "nic/cache_places.hpp"
#include "nic/replacement.hpp"

namespace rvma {

/// Fully associative; a policy says which line makes room.
///
/// A line is named by the *posting* of its buffer (BufferDescriptor::posting, never used twice) and its place in the
/// buffer's page list. So a line of a buffer that has completed can never answer for another one, whatever buffer ids,
/// page lists or pages are used again; it needs no invalidation, and ages out.
class PageCache {
 public:
  static constexpr std::uint32_t kLinePages = 8;  ///< 64 bytes of the page list

  struct Key {
    std::uint64_t posting = 0;
    std::uint64_t line = 0;  ///< pages 8 line .. 8 line + 7 of the buffer
    friend bool operator==(const Key& a, const Key& b) { return a.posting == b.posting && a.line == b.line; }
    friend bool operator!=(const Key& a, const Key& b) { return !(a == b); }
    friend std::size_t hash_value(const Key& key);
  };
  using Line = std::array<PhysicalAddress, kLinePages>;

  /// Holds `entries` page translations, rounded down to whole lines, at least one line.
  explicit PageCache(std::uint32_t entries,
                     std::unique_ptr<ReplacementPolicy> policy = make_replacement({}, Random{0}));

  /// The line, which counts as used; null if it is not here. Valid until the next insert().
  const Line* find(const Key& key);
  /// Adds or overwrites a line, which counts as used.
  void insert(const Key& key, const Line& line);

  std::size_t lines() const { return index_.size(); }
  std::size_t most_lines() const { return places_.capacity(); }

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = ~Index{0};
  struct Entry {
    Key key;
    Line line{};
  };

  CachePlaces places_;
  std::vector<Entry> entries_;  ///< by place
  boost::unordered_flat_map<Key, Index> index_;
  Index last_ = kNone;  ///< found or inserted last
};

}  // namespace rvma
