/// \file
/// What checking a trace leaves behind of each rank's program, so that cursors can play the text again: where its
/// blocks and loops lie, its names, and where each name is used last. Operations are not kept.
#pragma once

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/trace.hpp"

namespace rvma::trace_detail {

inline constexpr std::uint32_t kNoLoop = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint32_t kNoName = std::numeric_limits<std::uint32_t>::max();
/// Loops may nest so deep.
inline constexpr std::uint32_t kMaxLoopDepth = 32;

/// Place of a use within a rank's program: offset of its word in the text, plus 1. Later in the text is later in the
/// program. 0: none.
using UseSite = std::uint64_t;

/// Lines of one rank that stand together.
struct Block {
  std::uint64_t begin = 0;  ///< offset of the first line behind `rank R`
  std::uint64_t end = 0;
};

struct Loop {
  std::uint64_t begin = 0;      ///< offset of the `repeat` line
  std::uint64_t body = 0;       ///< offset of the line behind it
  std::uint64_t after_end = 0;  ///< offset of the line behind `end`
  std::uint64_t count = 0;      ///< passes
  std::uint32_t parent = kNoLoop;
  std::uint32_t line = 0;
  std::uint32_t depth = 1;       ///< 1: outermost
  std::uint32_t statements = 0;  ///< lines of the body, nested loops included; saturates
  bool plays = false;            ///< one pass plays at least one operation
};

enum class NameKind : std::uint8_t { window, buffer, put, get, message };

struct NameInfo {
  UseSite last_inner_use = 0;       ///< last use of this pass's instance by its bare name
  std::uint32_t loop = kNoLoop;     ///< innermost loop around the definition
  std::uint32_t line = 0;           ///< of the definition; saturates
  std::uint32_t suffix_levels = 0;  ///< bit c: used by suffix from a place that shares its c outermost loops
  NameKind kind = NameKind::put;
};

/// A use by suffix, seen from a place that shares the `common` outermost loops with the definition.
struct SuffixUse {
  std::uint32_t name = 0;
  std::uint32_t common = 0;
  std::vector<std::uint64_t> suffix;
  friend bool operator==(const SuffixUse& a, const SuffixUse& b) {
    return a.name == b.name && a.common == b.common && a.suffix == b.suffix;
  }
  friend std::size_t hash_value(const SuffixUse& use) {
    std::size_t seed = 0;
    boost::hash_combine(seed, use.name);
    boost::hash_combine(seed, use.common);
    boost::hash_combine(seed, use.suffix);
    return seed;
  }
};

/// What a rank's program says of another one in its sends and receives.
struct PeerUse {
  bool receives = false;
  bool sends = false;
  std::uint64_t longest_send = 0;  ///< bytes
};

/// A name as a word of the text, resolved at its place.
struct Reference {
  std::uint32_t name = 0;
  std::uint32_t common = 0;  ///< loops shared by the place and the definition
  std::vector<std::uint64_t> suffix;
};

class Program {
 public:
  Program() : index_(0, Hash{&names_}, Equal{&names_}) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  std::vector<Block> blocks;
  std::vector<Loop> loops;       ///< in the order of their `repeat`
  std::uint64_t operations = 0;  ///< unrolled; saturates
  std::uint64_t puts = 0;
  bool has_catch_all = false;                               ///< opens such a window
  boost::unordered_flat_map<std::uint32_t, PeerUse> peers;  ///< by rank

  const std::vector<std::string>& names() const { return names_; }
  const NameInfo& info(std::uint32_t name) const { return infos_[name]; }
  /// kNoName if there is none.
  std::uint32_t find(std::string_view name) const;
  std::uint32_t define(std::string_view name, const NameInfo& info);

  /// Loops around a definition.
  std::uint32_t depth(std::uint32_t name) const {
    const std::uint32_t loop = infos_[name].loop;
    return loop == kNoLoop ? 0 : loops[loop].depth;
  }
  /// Loops around `name`'s definition that are also around a place inside `open` (outermost first).
  std::uint32_t common_loops(std::uint32_t name, const std::vector<std::uint32_t>& open) const;
  /// The loop at `depth` (from 1) around the definition of `name`.
  std::uint32_t loop_at(std::uint32_t name, std::uint32_t depth) const;
  std::uint32_t loop_beginning_at(std::uint64_t offset) const;

  void record_use(const Reference& reference, UseSite site);
  /// Whether the instance `passes` is used anywhere by a site that shares fewer than `below` of its loops.
  bool used_by_suffix(std::uint32_t name, const std::vector<std::uint64_t>& passes, std::uint32_t below) const;
  /// Last site that uses `suffix` from a place that shares `common` loops.
  UseSite last_suffix_use(const SuffixUse& use) const;

 private:
  struct Hash {
    using is_transparent = void;
    const std::vector<std::string>* names;
    std::size_t operator()(std::uint32_t name) const { return (*this)((*names)[name]); }
    std::size_t operator()(std::string_view text) const { return boost::hash<std::string_view>{}(text); }
  };
  struct Equal {
    using is_transparent = void;
    const std::vector<std::string>* names;
    bool operator()(std::uint32_t a, std::uint32_t b) const { return a == b; }
    bool operator()(std::string_view a, std::uint32_t b) const { return a == (*names)[b]; }
    bool operator()(std::uint32_t a, std::string_view b) const { return (*names)[a] == b; }
  };

  std::vector<std::string> names_;
  std::vector<NameInfo> infos_;
  boost::unordered_flat_set<std::uint32_t, Hash, Equal> index_;
  boost::unordered_flat_map<SuffixUse, UseSite, boost::hash<SuffixUse>> suffix_uses_;
};

/// A name as written, cut into base and suffix numbers. False if it is neither `name` nor `name.i.j`.
bool split_name(std::string_view text, std::string_view& base, std::vector<std::uint64_t>& suffix);

/// a*b + c, at most the largest value.
std::uint64_t saturating_multiply_add(std::uint64_t a, std::uint64_t b, std::uint64_t c);

}  // namespace rvma::trace_detail
