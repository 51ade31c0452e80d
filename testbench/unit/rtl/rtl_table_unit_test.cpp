// The Verilog table as a unit of the RNIC beside the C++ one: the same answers at the same times, whatever is asked.
#include "rtl/adapter/rtl_table_unit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/component.hpp"
#include "base/random.hpp"
#include "rtl/adapter/table_factory.hpp"

namespace rvma {
namespace {

TableConfig config_of(const TableShape& shape) {
  TableConfig config;
  config.banks = shape.banks;
  config.rows = shape.rows;
  config.slots = shape.slots;
  config.stash = shape.stash;
  config.max_kicks = shape.max_kicks;
  config.latency = Cycles{std::int64_t{shape.latency}};
  return config;
}

/// Asks one table at random, and notes every answer with its time.
class Asker : public Component {
 public:
  Asker(const sc_core::sc_module_name& name, SimContext& context, Frequency clock, TableUnit& table, std::uint64_t seed,
        std::uint32_t keys, std::uint32_t actions)
      : Component(name, context, clock),
        table_(table),
        random_(seed),
        keys_(keys),
        actions_(actions),
        wakeup_(*this, "wakeup", [this] { act(); }) {
    wakeup_.at(Time::zero());
  }
  const std::vector<std::string>& log() const { return log_; }
  std::uint64_t hits() const { return hits_; }
  std::uint64_t full() const { return full_; }

 private:
  void note(const std::string& what) { log_.push_back(to_string(now()) + " " + what); }

  void act() {
    // 1. Take some of what can be taken.
    while (!due_.empty() && clock().time_of(due_.front()) <= now() && random_.below(4) != 0) {
      due_.pop_front();
      const LookupResult result = table_.lookups->take();
      hits_ += result.hit ? 1 : 0;
      note("lookup " + std::to_string(result.hit) + " " + std::to_string(result.slot.value()) + " " +
           std::to_string(result.sweeping));
    }
    if (actions_ == 0) {
      if (!due_.empty()) wakeup_.at(clock().time_of(std::max(due_.front(), current_cycle() + Cycles{1})));
      return;
    }
    --actions_;
    // 2. Lookups ahead of their cycle, now and then one in each cycle.
    const Cycles current = current_cycle();
    next_lookup_ = std::max(next_lookup_, current);
    for (std::uint64_t i = random_.below(4) == 0 ? random_.below(6) : random_.below(2); i > 0; --i) {
      next_lookup_ = next_lookup_ + Cycles{static_cast<std::int64_t>(random_.below(3) == 0 ? random_.below(9) : 0)};
      table_.lookups->lookup(Pid{1}, Mailbox{random_.below(keys_)}, next_lookup_);
      due_.push_back(next_lookup_ + table_.latency());
      next_lookup_ = next_lookup_ + Cycles{1};
    }
    // 3. Commands, some for later.
    if (random_.below(3) == 0) {
      TableCommand command;
      const std::uint64_t which = random_.below(20);
      command.operation = which < 11   ? TableOperation::insert
                          : which < 15 ? TableOperation::erase
                          : which < 17 ? TableOperation::update
                          : which < 19 ? TableOperation::find
                                       : TableOperation::flush;
      if (command.operation == TableOperation::flush && random_.below(10) != 0)
        command.operation = TableOperation::find;
      command.pid = Pid{1};
      command.mailbox = Mailbox{random_.below(keys_)};
      command.slot = SlotId{static_cast<std::uint16_t>(random_.below(1000))};
      const Cycles at = current + Cycles{static_cast<std::int64_t>(random_.below(4) == 0 ? random_.below(20) : 0)};
      last_command_ = std::max(last_command_, at);
      table_.commands->command(command, last_command_, [this](const TableAnswer& answer) {
        full_ += answer.status == TableStatus::full ? 1 : 0;
        note("answer " + std::to_string(static_cast<int>(answer.status)) + " " + std::to_string(answer.slot.value()) +
             " " + std::to_string(answer.used.count()) + " " + std::to_string(answer.kicks) + " " +
             std::to_string(answer.in_stash));
      });
    }
    // 4. Next: soon, at any time between edges, or after a long idle time.
    const std::uint64_t wait_ps = random_.below(50) == 0  ? random_.below(3'000'000)
                                  : random_.below(5) == 0 ? 0
                                                          : random_.below(8'000);
    Time next = now() + Time::from_ps(static_cast<std::int64_t>(wait_ps + 1));
    if (random_.below(2) == 0) next = clock().time_of(clock().edge_at_or_after(next));
    wakeup_.at(next);
  }

  TableUnit& table_;
  Random random_;
  std::uint32_t keys_;
  std::uint32_t actions_;
  Cycles next_lookup_;
  Cycles last_command_;
  std::deque<Cycles> due_;
  std::vector<std::string> log_;
  std::uint64_t hits_ = 0;
  std::uint64_t full_ = 0;
  Wakeup wakeup_;
};

struct StatsText : StatVisitor {
  void counter(const std::string& name, const Counter& stat) override { add(name, stat.value()); }
  void time_sum(const std::string& name, const TimeSum& stat) override {
    add(name, static_cast<std::uint64_t>(stat.value().ps()));
  }
  void peak(const std::string& name, const Peak& stat) override { add(name, stat.value()); }
  void histogram(const std::string& name, const Histogram& stat) override { add(name, stat.count()); }
  void utilisation(const std::string& name, const Utilisation& stat) override { add(name, stat.work()); }
  void add(const std::string& name, std::uint64_t value) { text += name + " " + std::to_string(value) + "\n"; }
  std::string text;
};

std::string stats_of(const SimContext& context, const std::string& unit) {
  StatsText text;
  for (const StatsRegistry::Entry& entry : context.stats().entries()) {
    if (entry.unit_path == unit) entry.visit(text);
  }
  return text.text;
}

class RtlTableUnitTest : public testing::TestWithParam<std::size_t> {};

TEST_P(RtlTableUnitTest, AnswersAsTheCppTableDoesAtTheSameTimes) {
  const VerilatedTable::BuiltShape& built = VerilatedTable::built().at(GetParam());
  const std::uint64_t seed = 2026 + GetParam();
  SCOPED_TRACE(std::string{built.name} + ", seed " + std::to_string(seed));
  TableShape shape = built.shape;
  shape.seed = TableConfig{}.seed;
  const TableConfig config = config_of(shape);
  const Frequency clock = Frequency::mhz(GetParam() % 2 == 0 ? 1000 : 700);
  SimContext context{1};
  ModelTableUnit model("model", context, clock, config);
  std::unique_ptr<VerilatedTable> table = VerilatedTable::make(shape);
  ASSERT_NE(table, nullptr);
  RtlTableUnit rtl("rtl", context, clock, config,
                   std::make_unique<RtlTableCore>(std::move(table), ClockDomain{clock}.time_of(Cycles{1})));
  const std::uint32_t keys = std::min(2 * shape.capacity(), 6'000U);
  Asker model_asker("model_asker", context, clock, model, seed, keys, 20'000);
  Asker rtl_asker("rtl_asker", context, clock, rtl, seed, keys, 20'000);
  sc_core::sc_start();
  ASSERT_EQ(model_asker.log().size(), rtl_asker.log().size());
  for (std::size_t i = 0; i < model_asker.log().size(); ++i) ASSERT_EQ(model_asker.log()[i], rtl_asker.log()[i]) << i;
  EXPECT_GT(model_asker.log().size(), 10'000U);
  EXPECT_GT(model_asker.hits(), 100U);
  EXPECT_GE(model_asker.full(), shape.capacity() < 100 ? 10U : 0U);
  EXPECT_EQ(stats_of(context, "model"), stats_of(context, "rtl"));
  // Idle cycles are left out: the whole took far more of them than were clocked.
  EXPECT_LT(rtl.clocked_cycles(), static_cast<std::uint64_t>(rtl.current_cycle().count()));
}

INSTANTIATE_TEST_SUITE_P(Shapes, RtlTableUnitTest, testing::Range<std::size_t>(0, VerilatedTable::built().size()),
                         [](const auto& shape) { return std::string{VerilatedTable::built()[shape.param].name}; });

TEST(RtlTableUnit, AnIdleSecondCostsNothing) {
  SimContext context{1};
  const TableConfig config;
  RtlTableUnit rtl("rtl", context, Frequency::mhz(1000), config,
                   std::make_unique<RtlTableCore>(VerilatedTable::make(TableShape::from(config)), Time::from_ns(1)));
  class Late : public Component {
   public:
    Late(const sc_core::sc_module_name& name, SimContext& simulation, TableUnit& table)
        : Component(name, simulation, Frequency::mhz(1000)),
          wakeup_(*this, "wakeup", [this, &table] { table.lookups->lookup(Pid{1}, Mailbox{7}, current_cycle()); }) {
      wakeup_.at(Time::from_us(1'000'000));
    }

   private:
    Wakeup wakeup_;
  } late("late", context, rtl);
  sc_core::sc_start();
  sc_core::sc_start(sc_core::sc_time(10, sc_core::SC_NS));
  EXPECT_FALSE(rtl.lookups->take().hit);
  // The sweep, and the lookup.
  EXPECT_LT(rtl.clocked_cycles(), 600U);
  EXPECT_EQ(context.activations(), 1U);
}

TEST(RtlTableFactory, WavesGetTheNodeIntoTheirName) {
  EXPECT_EQ(waves_path("out.fst", "node1.nic.table"), "out.node1.fst");
  EXPECT_EQ(waves_path("a.b/out", "node12.nic.table"), "a.b/out.node12");
  EXPECT_EQ(waves_path("a.b/.fst", "node0"), "a.b/.fst.node0");
}

TEST(RtlTableFactory, AShapeThatIsNotBuiltIsRefusedWithThoseThatAre) {
  TableConfig config;
  EXPECT_FALSE(check_rtl_table(config).has_value());
  config.latency = Cycles{1};
  const auto error = check_rtl_table(config);
  ASSERT_TRUE(error.has_value());
  EXPECT_NE(error->to_string().find("4 banks x 512 rows x 2 slots, stash 8, 32 kicks, latency 1, parity"),
            std::string::npos)
      << error->to_string();
  EXPECT_NE(error->to_string().find("latency 2, parity"), std::string::npos) << error->to_string();
}

}  // namespace
}  // namespace rvma
