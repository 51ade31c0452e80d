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

constexpr auto kLargestTime = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

}  // namespace

void Counter::visit(const std::string& name, StatVisitor& visitor) const { visitor.counter(name, *this); }
void TimeSum::visit(const std::string& name, StatVisitor& visitor) const { visitor.time_sum(name, *this); }
void Peak::visit(const std::string& name, StatVisitor& visitor) const { visitor.peak(name, *this); }
void Histogram::visit(const std::string& name, StatVisitor& visitor) const { visitor.histogram(name, *this); }
void Utilisation::visit(const std::string& name, StatVisitor& visitor) const { visitor.utilisation(name, *this); }

void Histogram::add(Time sample) {
  RVMA_ASSERT(sample >= Time::zero(), "a negative time cannot be a sample");
  const auto value = static_cast<std::uint64_t>(sample.ps());
  const std::size_t bucket = bucket_of(value);
  if (bucket / kSub >= buckets_.size()) buckets_.resize(bucket / kSub + 1);
  std::unique_ptr<Buckets>& group = buckets_[bucket / kSub];
  if (!group) group = std::make_unique<Buckets>();
  ++(*group)[bucket % kSub];
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
  for (std::size_t group = 0; group < buckets_.size(); ++group) {
    if (!buckets_[group]) continue;
    for (std::size_t i = 0; i < kSub; ++i) {
      seen += (*buckets_[group])[i];
      if (seen < rank) continue;
      const Time end = Time::from_ps(static_cast<std::int64_t>(upper_end(group * kSub + i)));
      return std::clamp(end, min_, max_);
    }
  }
  return max_;
}

void Histogram::reset() {
  buckets_.clear();
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

void StatsRegistry::reset() {
  for_each([](const Entry& entry) { entry.stat->reset(); });
}

}  // namespace rvma
