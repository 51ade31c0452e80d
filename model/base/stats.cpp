#include "base/stats.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>

#include "base/int128.hpp"

namespace rvma {
namespace {

/// Buckets of a power of two.
constexpr unsigned kSubBits = Histogram::kSubBits;
constexpr std::uint64_t kSub = std::uint64_t{1} << kSubBits;

/// Values below 2 * kSub have a bucket each; above, the bits after the leading one choose it.
std::size_t bucket_of(std::uint64_t value) {
  if (value < 2 * kSub) return static_cast<std::size_t>(value);
  const unsigned shift = 63U - static_cast<unsigned>(__builtin_clzll(value)) - kSubBits;
  return static_cast<std::size_t>(shift * kSub + (value >> shift));
}

/// Greatest value of a bucket.
std::uint64_t upper_end(std::size_t bucket) {
  if (bucket < 2 * kSub) return bucket;
  const std::uint64_t shift = bucket / kSub - 1;
  const std::uint64_t leading = bucket - shift * kSub;
  return ((leading + 1) << shift) - 1;
}

constexpr std::size_t kChunk = 16;

constexpr auto kLargestTime = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

}  // namespace

const StatBase::Texts::Text& StatBase::Texts::of(const StatBase& stat) const {
  const auto found = std::find_if(texts_.begin(), texts_.end(), [&](const Text& text) { return text.of == &stat; });
  RVMA_ASSERT(found != texts_.end(), "a statistic was described without being constructed");
  return *found;
}

Histogram::Chunk& Histogram::chunk(std::size_t number) {
  if (last_chunk_ < chunks_.size() && chunks_[last_chunk_].number == number) return chunks_[last_chunk_];
  const auto at = std::lower_bound(chunks_.begin(), chunks_.end(), number,
                                   [](const Chunk& chunk, std::size_t wanted) { return chunk.number < wanted; });
  last_chunk_ = static_cast<std::size_t>(at - chunks_.begin());
  if (at == chunks_.end() || at->number != number) chunks_.insert(at, Chunk{number, {}});
  return chunks_[last_chunk_];
}

void Histogram::add(Time sample) {
  RVMA_ASSERT(sample >= Time::zero(), "a negative time cannot be a sample");
  const auto value = static_cast<std::uint64_t>(sample.ps());
  const std::size_t bucket = bucket_of(value);
  ++chunk(bucket / kChunk).counts[bucket % kChunk];
  if (count_ == 0 || sample < min_) min_ = sample;
  if (sample > max_) max_ = sample;
  ++count_;
  if (__builtin_add_overflow(sum_low_ps_, value, &sum_low_ps_)) ++sum_high_ps_;
}

Time Histogram::sum() const {
  if (sum_high_ps_ != 0 || sum_low_ps_ > kLargestTime) return Time::max();
  return Time::from_ps(static_cast<std::int64_t>(sum_low_ps_));
}

Time Histogram::mean() const {
  if (count_ == 0) return Time::zero();
  const detail::uint128 sum = (detail::uint128{sum_high_ps_} << 64U) | sum_low_ps_;
  return Time::from_ps(static_cast<std::int64_t>(sum / count_));
}

Time Histogram::quantile(unsigned parts_per_thousand) const {
  RVMA_ASSERT(parts_per_thousand <= 1000, "a quantile is at most 1000 parts per thousand");
  if (count_ == 0) return Time::zero();
  if (parts_per_thousand == 0) return min_;
  if (parts_per_thousand == 1000) return max_;
  const auto rank = static_cast<std::uint64_t>((detail::uint128{count_} * parts_per_thousand + 999) / 1000);
  std::uint64_t seen = 0;
  for (const Chunk& chunk : chunks_) {
    for (std::size_t i = 0; i < kChunk; ++i) {
      seen += chunk.counts[i];
      if (seen < rank) continue;
      const Time end = Time::from_ps(static_cast<std::int64_t>(upper_end(chunk.number * kChunk + i)));
      return std::clamp(end, min_, max_);
    }
  }
  return max_;
}

void Histogram::reset() {
  chunks_.clear();
  last_chunk_ = 0;
  count_ = 0;
  min_ = Time::zero();
  max_ = Time::zero();
  sum_low_ps_ = 0;
  sum_high_ps_ = 0;
}

void StatsRegistry::add_group(const std::string& unit_path, void* object, Members members) {
  const std::size_t index = groups_.size();
  groups_.push_back({unit_path, object, members, 0});
  const auto [first, is_new] = first_of_unit_.try_emplace(groups_.back().unit_path, index);
  continues_unit_.push_back(!is_new);
  if (is_new) return;
  std::size_t before = first->second;
  const auto check = [&](const Group& other) {
    for (std::size_t i = 0; i < members.count; ++i) {
      for (std::size_t j = 0; j < other.members.count; ++j) {
        RVMA_ASSERT(std::string_view{members.first[i].name} != other.members.first[j].name,
                    "two statistics have the path " + unit_path + "." + members.first[i].name);
      }
    }
  };
  check(groups_[before]);
  while (groups_[before].next_of_unit != 0) {
    before = groups_[before].next_of_unit;
    check(groups_[before]);
  }
  groups_[before].next_of_unit = index;
}

namespace {

/// Calls `use` with the statistic as what it is.
template <class Use>
void with_kind(StatKind kind, void* stat, Use use) {
  switch (kind) {
    case StatKind::counter:
      return use(*static_cast<Counter*>(stat));
    case StatKind::time_sum:
      return use(*static_cast<TimeSum*>(stat));
    case StatKind::peak:
      return use(*static_cast<Peak*>(stat));
    case StatKind::histogram:
      return use(*static_cast<Histogram*>(stat));
    case StatKind::utilisation:
      return use(*static_cast<Utilisation*>(stat));
  }
}

struct VisitStat {
  const std::string& name;
  StatVisitor& visitor;
  void operator()(const Counter& stat) const { visitor.counter(name, stat); }
  void operator()(const TimeSum& stat) const { visitor.time_sum(name, stat); }
  void operator()(const Peak& stat) const { visitor.peak(name, stat); }
  void operator()(const Histogram& stat) const { visitor.histogram(name, stat); }
  void operator()(const Utilisation& stat) const { visitor.utilisation(name, stat); }
};

}  // namespace

void StatsRegistry::Entry::visit(StatVisitor& visitor) const {
  with_kind(member_->kind, stat_, VisitStat{std::string{name}, visitor});
}

void StatsRegistry::Entry::reset() const {
  with_kind(member_->kind, stat_, [](auto& stat) { stat.reset(); });
}

void StatsRegistry::reset() {
  for_each([](const Entry& entry) { entry.reset(); });
}

}  // namespace rvma
