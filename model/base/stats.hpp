/// \file
/// Statistics, declared once. A group is a struct whose members are the types below, listed with BOOST_DESCRIBE_CLASS;
/// a unit registers it under its path, and stats.json, the summary and the reference table follow.
///
///     struct ParserStats {
///       Counter packets{"packets", "packets taken from the link"};
///       TimeSum stalled_ns{"time the head packet waited for a downstream queue"};
///       BOOST_DESCRIBE_CLASS(ParserStats, (), (packets, stalled_ns), (), ())
///     };
///
/// A name ends in its unit (`_ns`, `_bytes`) unless it counts things. In the model they are plain integers.
#pragma once

#include <array>
#include <boost/describe.hpp>
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "base/widening.hpp"

namespace rvma {

class StatVisitor;

class StatBase {
 public:
  virtual ~StatBase() = default;
  virtual void reset() = 0;
  virtual void visit(const std::string& name, StatVisitor& visitor) const = 0;
  std::string_view unit() const { return unit_; }
  std::string_view description() const { return description_; }

 protected:
  /// Both are string literals: a thousand nodes have a hundred thousand statistics, so that each byte counts.
  StatBase(const char* unit, const char* description) : unit_(unit), description_(description) {}
  StatBase(const StatBase&) = default;
  StatBase& operator=(const StatBase&) = default;

 private:
  const char* unit_;
  const char* description_;
};

/// Counts things; `unit` says which ("packets", "bytes", "polls").
class Counter final : public StatBase {
 public:
  Counter(const char* unit, const char* description) : StatBase(unit, description) {}
  Counter& operator++() {
    ++value_;
    return *this;
  }
  Counter& operator+=(std::uint64_t amount) {
    value_ += amount;
    return *this;
  }
  std::uint64_t value() const { return value_; }
  void reset() override { value_ = 0; }
  void visit(const std::string& name, StatVisitor& visitor) const override;

 private:
  std::uint64_t value_ = 0;
};

/// Sum of simulated times; printed in ns, exact to the ps.
class TimeSum final : public StatBase {
 public:
  explicit TimeSum(const char* description) : StatBase("ns", description) {}
  TimeSum& operator+=(Time amount) {
    value_ += amount;
    return *this;
  }
  Time value() const { return value_; }
  void reset() override { value_ = Time::zero(); }
  void visit(const std::string& name, StatVisitor& visitor) const override;

 private:
  Time value_;
};

/// Greatest level that a queue or store reached.
class Peak final : public StatBase {
 public:
  Peak(const char* unit, const char* description) : StatBase(unit, description) {}
  void observe(std::uint64_t level) {
    if (level > value_) value_ = level;
  }
  std::uint64_t value() const { return value_; }
  void reset() override { value_ = 0; }
  void visit(const std::string& name, StatVisitor& visitor) const override;

 private:
  std::uint64_t value_ = 0;
};

/// Distribution of times in bounded memory: count, min, max and sum are exact; a quantile is the upper end of its
/// bucket, at most 1/128 above the true value (buckets: 128 a power of two).
class Histogram final : public StatBase {
 public:
  static constexpr unsigned kSubBits = 7;  ///< log2 of the buckets of a power of two

  explicit Histogram(const char* description) : StatBase("ns", description) {}
  void add(Time sample);
  std::uint64_t count() const { return count_; }
  Time min() const { return count_ == 0 ? Time::zero() : min_; }
  Time max() const { return max_; }
  /// Exact; "never" if it is beyond the range of Time (the mean stays right).
  Time sum() const;
  /// Mean, rounded down to a ps; zero without samples.
  Time mean() const;
  /// Value that at least `parts_per_thousand` / 1000 of the samples do not exceed; exact for min and max.
  Time quantile(unsigned parts_per_thousand) const;
  void reset() override;
  void visit(const std::string& name, StatVisitor& visitor) const override;

 private:
  using Buckets = std::array<std::uint64_t, std::size_t{1} << kSubBits>;
  /// Of each power of two, once it has a sample.
  std::vector<std::unique_ptr<Buckets>> buckets_;
  std::uint64_t count_ = 0;
  Time min_;
  Time max_;
  std::uint64_t sum_low_ps_ = 0;  ///< of a 128-bit sum
  std::uint64_t sum_high_ps_ = 0;
};

/// What kind of work a unit's bound is stated in.
enum class WorkKind { bits, operations };

/// How busy a unit is against the most it could do: the source of `limits` and `bottleneck`.
/// `busy` is the time that the unit was occupied; busy / elapsed is its share of its bound.
class Utilisation final : public StatBase {
 public:
  /// `widened_by` outlives all statistics.
  Utilisation(WorkKind kind, const char* description, const Widenings& widened_by)
      : StatBase(kind == WorkKind::bits ? "bits" : "operations", description), widened_by_(&widened_by), kind_(kind) {}
  void occupy(Time busy, std::uint64_t work) {
    busy_ += busy;
    work_ += work;
  }
  WorkKind kind() const { return kind_; }
  const Widenings& widened_by() const { return *widened_by_; }
  Time busy() const { return busy_; }
  std::uint64_t work() const { return work_; }
  void reset() override {
    busy_ = Time::zero();
    work_ = 0;
  }
  void visit(const std::string& name, StatVisitor& visitor) const override;

 private:
  const Widenings* widened_by_;
  WorkKind kind_;
  Time busy_;
  std::uint64_t work_ = 0;
};

class StatVisitor {
 public:
  virtual ~StatVisitor() = default;
  virtual void counter(const std::string& name, const Counter& stat) = 0;
  virtual void time_sum(const std::string& name, const TimeSum& stat) = 0;
  virtual void peak(const std::string& name, const Peak& stat) = 0;
  virtual void histogram(const std::string& name, const Histogram& stat) = 0;
  virtual void utilisation(const std::string& name, const Utilisation& stat) = 0;
};

/// Units too many to have a statistic each, which can say how busy they were: of them `limits` names the busiest.
class UtilisationTable {
 public:
  virtual ~UtilisationTable() = default;
  virtual std::size_t size() const = 0;
  /// Full path that the unit's Utilisation would have.
  virtual std::string unit(std::size_t index) const = 0;
  virtual const Utilisation& utilisation(std::size_t index) const = 0;
};

/// Every statistic of a run under a unique full path ("node0.nic.parser", "packets").
class StatsRegistry {
  /// What a described group consists of; one for each type of group.
  struct Member {
    const char* name;
    StatBase& (*in)(void* group);
    bool is_utilisation;
  };
  struct Members {
    const Member* first;
    std::size_t count;
  };
  /// One registered group. All a statistic costs beside itself is a share of this.
  struct Group {
    std::string unit_path;
    void* object;
    Members members;
    std::size_t next_of_unit;  ///< registered under the same path; 0: none
  };

 public:
  struct Entry {
    std::string_view unit_path;
    std::string_view name;
    StatBase* stat = nullptr;
    std::string path() const { return std::string{unit_path} + "." + std::string{name}; }
    void visit(StatVisitor& visitor) const { stat->visit(std::string{name}, visitor); }
  };

  /// Registers all members of a described group; the group must outlive the registry. A path is taken once.
  template <class Described>
  void add(const std::string& unit_path, Described& group) {
    add_group(unit_path, &group, members_of<Described>());
  }
  /// Calls `use(entry)` for every statistic, in order of registration.
  template <class Use>
  void for_each(Use use) const {
    for (const Group& group : groups_) each_of(group, use);
  }
  /// Calls `use(entry, utilisation)` for every Utilisation, in order of registration.
  template <class Use>
  void for_each_utilisation(Use use) const {
    for (const Group& group : groups_) {
      for (std::size_t i = 0; i < group.members.count; ++i) {
        if (!group.members.first[i].is_utilisation) continue;
        const Entry entry = entry_of(group, i);
        use(entry, static_cast<const Utilisation&>(*entry.stat));
      }
    }
  }
  /// Calls `open(unit_path)`, `use(entry)` for each statistic of that unit, and `close()`; units in order of
  /// registration.
  template <class Open, class Use, class Close>
  void for_each_unit(Open open, Use use, Close close) const {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (continues_unit_[i]) continue;
      open(groups_[i].unit_path);
      each_of(groups_[i], use);
      for (std::size_t j = groups_[i].next_of_unit; j != 0; j = groups_[j].next_of_unit) each_of(groups_[j], use);
      close();
    }
  }
  /// All statistics at once, in order of registration: for small systems.
  std::vector<Entry> entries() const {
    std::vector<Entry> all;
    for_each([&](const Entry& entry) { all.push_back(entry); });
    return all;
  }
  /// How full a queue is now. Nothing looks at it but a series of samples (report/series).
  struct Level {
    std::string unit_path;
    const char* name;  ///< ends in its unit, unless it counts things
    std::function<std::uint64_t()> now;
  };
  /// What `now` refers to outlives the registry.
  void add_level(std::string unit_path, const char* name, std::function<std::uint64_t()> now) {
    levels_.push_back({std::move(unit_path), name, std::move(now)});
  }
  const std::vector<Level>& levels() const { return levels_; }
  /// The table outlives the registry.
  void add_table(const UtilisationTable& table) { tables_.push_back(&table); }
  const std::vector<const UtilisationTable*>& tables() const { return tables_; }
  void reset();

 private:
  template <class Described>
  static Members members_of() {
    using List = boost::describe::describe_members<Described, boost::describe::mod_any_access>;
    static const auto table = boost::mp11::mp_apply<std::tuple, List>{};
    static const std::array<Member, boost::mp11::mp_size<List>::value> members = std::apply(
        [](auto... member) {
          return std::array<Member, sizeof...(member)>{Member{
              member.name,
              [](void* group) -> StatBase& { return static_cast<Described*>(group)->*decltype(member)::pointer; },
              std::is_same_v<std::decay_t<decltype(std::declval<Described>().*decltype(member)::pointer)>,
                             Utilisation>}...};
        },
        table);
    return {members.data(), members.size()};
  }
  static Entry entry_of(const Group& group, std::size_t member) {
    const Member& of = group.members.first[member];
    return {group.unit_path, of.name, &of.in(group.object)};
  }
  template <class Use>
  static void each_of(const Group& group, Use& use) {
    for (std::size_t i = 0; i < group.members.count; ++i) use(entry_of(group, i));
  }
  void add_group(const std::string& unit_path, void* object, Members members);

  std::deque<Group> groups_;          ///< never moved: entries refer to their paths
  std::vector<bool> continues_unit_;  ///< another group of the same path came before
  boost::unordered_flat_map<std::string_view, std::size_t> first_of_unit_;
  std::vector<const UtilisationTable*> tables_;
  std::vector<Level> levels_;
};

}  // namespace rvma
