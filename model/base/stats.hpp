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

enum class StatKind : std::uint8_t { counter, time_sum, peak, histogram, utilisation };

/// What all statistics have in common: the texts of their declaration. They are the same for each group of a type and
/// so kept with the type: a thousand nodes have three hundred thousand statistics, and each is only its value.
class StatBase {
 public:
  /// Notes the texts of all statistics that are constructed while it lives.
  class Texts {
   public:
    struct Text {
      const StatBase* of;
      const char* unit;
      const char* description;
    };
    Texts() : outer_(collecting_) { collecting_ = this; }
    Texts(const Texts&) = delete;
    Texts& operator=(const Texts&) = delete;
    ~Texts() { collecting_ = outer_; }
    /// The statistic must have been constructed meanwhile.
    const Text& of(const StatBase& stat) const;

   private:
    friend class StatBase;
    Texts* outer_;
    std::vector<Text> texts_;
  };

 protected:
  /// Both are string literals.
  StatBase(const char* unit, const char* description) {
    if (collecting_ != nullptr) collecting_->texts_.push_back({this, unit, description});
  }
  StatBase(const StatBase&) = default;
  StatBase& operator=(const StatBase&) = default;
  ~StatBase() = default;

 private:
  inline static thread_local Texts* collecting_ = nullptr;
};

/// Counts things; `unit` says which ("packets", "bytes", "polls").
class Counter final : public StatBase {
 public:
  static constexpr StatKind kKind = StatKind::counter;
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
  void reset() { value_ = 0; }

 private:
  std::uint64_t value_ = 0;
};

/// Sum of simulated times; printed in ns, exact to the ps.
class TimeSum final : public StatBase {
 public:
  static constexpr StatKind kKind = StatKind::time_sum;
  explicit TimeSum(const char* description) : StatBase("ns", description) {}
  TimeSum& operator+=(Time amount) {
    value_ += amount;
    return *this;
  }
  Time value() const { return value_; }
  void reset() { value_ = Time::zero(); }

 private:
  Time value_;
};

/// Greatest level since somebody last asked: of each interval, if it is asked for at the end of each.
class RecentPeak {
 public:
  void observe(std::uint64_t level) {
    if (level > value_) value_ = level;
  }
  /// `now`: the level that the next interval begins with.
  std::uint64_t take(std::uint64_t now) {
    observe(now);
    return std::exchange(value_, now);
  }

 private:
  std::uint64_t value_ = 0;
};

/// Greatest level that a queue or store reached.
class Peak final : public StatBase {
 public:
  static constexpr StatKind kKind = StatKind::peak;
  Peak(const char* unit, const char* description) : StatBase(unit, description) {}
  void observe(std::uint64_t level) {
    if (level > value_) value_ = level;
    recent_.observe(level);
  }
  RecentPeak& recent() { return recent_; }
  std::uint64_t value() const { return value_; }
  void reset() { value_ = 0; }

 private:
  std::uint64_t value_ = 0;
  RecentPeak recent_;
};

/// Distribution of times in bounded memory: count, min, max and sum are exact; a quantile is the upper end of its
/// bucket, at most 1/128 above the true value (buckets: 128 a power of two).
class Histogram final : public StatBase {
 public:
  static constexpr StatKind kKind = StatKind::histogram;
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
  void reset();

 private:
  /// Neighbouring buckets, once one of them has a sample: the samples of a unit mostly lie close together.
  struct Chunk {
    std::size_t number;
    std::array<std::uint64_t, 16> counts;
  };
  Chunk& chunk(std::size_t number);

  std::vector<Chunk> chunks_;   ///< by number
  std::size_t last_chunk_ = 0;  ///< place of the one that was used last
  std::uint64_t count_ = 0;
  Time min_;
  Time max_;
  std::uint64_t sum_low_ps_ = 0;  ///< of a 128-bit sum
  std::uint64_t sum_high_ps_ = 0;
};

/// What kind of work a unit's bound is stated in. Stalls are no work: something waited, because a store was full.
enum class WorkKind { bits, operations, stalls };
constexpr const char* name_of(WorkKind kind) {
  return kind == WorkKind::bits ? "bits" : kind == WorkKind::operations ? "operations" : "stalls";
}

/// How busy a unit is against the most it could do: the source of `limits` and `bottleneck`.
/// `busy` is the time that the unit was occupied; busy / elapsed is its share of its bound. Of a store
/// (WorkKind::stalls) it is the time in which something waited for room.
class Utilisation final : public StatBase {
 public:
  static constexpr StatKind kKind = StatKind::utilisation;
  /// `widened_by` outlives all statistics.
  Utilisation(WorkKind kind, const char* description, const Widenings& widened_by)
      : StatBase(name_of(kind), description), widened_by_(&widened_by), kind_(kind) {}
  void occupy(Time busy, std::uint64_t work) {
    busy_ += busy;
    work_ += work;
  }
  WorkKind kind() const { return kind_; }
  const Widenings& widened_by() const { return *widened_by_; }
  Time busy() const { return busy_; }
  std::uint64_t work() const { return work_; }
  void reset() {
    busy_ = Time::zero();
    work_ = 0;
  }

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
    StatKind kind;
    void* (*in)(void* group);
    const char* unit;
    const char* description;
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
  class Entry {
   public:
    std::string_view unit_path;
    std::string_view name;
    std::string path() const { return std::string{unit_path} + "." + std::string{name}; }
    StatKind kind() const { return member_->kind; }
    std::string_view unit() const { return member_->unit; }
    std::string_view description() const { return member_->description; }
    /// Null if it is a statistic of another kind.
    template <class Stat>
    const Stat* as() const {
      return member_->kind == Stat::kKind ? static_cast<const Stat*>(stat_) : nullptr;
    }
    void visit(StatVisitor& visitor) const;

   private:
    friend class StatsRegistry;
    Entry(const Group& group, std::size_t member)
        : unit_path(group.unit_path),
          name(group.members.first[member].name),
          member_(group.members.first + member),
          stat_(member_->in(group.object)) {}
    void reset() const;

    const Member* member_;
    void* stat_;
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
        if (group.members.first[i].kind != StatKind::utilisation) continue;
        const Entry entry{group, i};
        use(entry, *entry.as<Utilisation>());
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
  /// How full a queue has been since it was last asked for.
  struct Level {
    std::string_view unit_path;
    const char* name;  ///< ends in its unit, unless it counts things
    std::function<std::uint64_t()> take;
  };
  /// Before units are made: somebody will look at levels (report/series). Else they cost nothing.
  void keep_levels() { keeps_levels_ = true; }
  /// `peak` has observed every level above the ones before; what it and `now`, the level now, refer to outlives the
  /// registry.
  template <class Now>
  void add_level(const std::string& unit_path, const char* name, Peak& peak, Now now) {
    if (!keeps_levels_) return;
    add_level(unit_path, name, [&recent = peak.recent(), now] { return recent.take(now()); });
  }
  void add_level(const std::string& unit_path, const char* name, std::function<std::uint64_t()> take) {
    if (!keeps_levels_) return;
    const auto group = first_of_unit_.find(unit_path);
    if (group == first_of_unit_.end()) level_paths_.push_back(unit_path);
    levels_.push_back(
        {group == first_of_unit_.end() ? std::string_view{level_paths_.back()} : group->first, name, std::move(take)});
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
    static constexpr auto table = boost::mp11::mp_apply<std::tuple, List>{};
    static const std::array<Member, boost::mp11::mp_size<List>::value> members = [] {
      const StatBase::Texts texts;
      const Described declared{};
      return std::apply(
          [&](auto... member) {
            return std::array<Member, sizeof...(member)>{describe<Described>(member, declared, texts)...};
          },
          table);
    }();
    return {members.data(), members.size()};
  }
  template <class Described, class Descriptor>
  static Member describe(Descriptor member, const Described& declared, const StatBase::Texts& texts) {
    const auto& stat = declared.*decltype(member)::pointer;
    const StatBase::Texts::Text& text = texts.of(stat);
    return {member.name, std::decay_t<decltype(stat)>::kKind,
            [](void* group) -> void* { return &(static_cast<Described*>(group)->*Descriptor::pointer); }, text.unit,
            text.description};
  }
  template <class Use>
  static void each_of(const Group& group, Use& use) {
    for (std::size_t i = 0; i < group.members.count; ++i) use(Entry{group, i});
  }
  void add_group(const std::string& unit_path, void* object, Members members);

  std::deque<Group> groups_;          ///< never moved: entries refer to their paths
  std::vector<bool> continues_unit_;  ///< another group of the same path came before
  boost::unordered_flat_map<std::string_view, std::size_t> first_of_unit_;
  std::vector<const UtilisationTable*> tables_;
  bool keeps_levels_ = false;
  std::vector<Level> levels_;
  std::deque<std::string> level_paths_;  ///< of units without a group
};

}  // namespace rvma
