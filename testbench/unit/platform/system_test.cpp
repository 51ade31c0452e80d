// A whole machine, with rank programs that are ordinary functions over the driver: no trace, no player.
#include "platform/system.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "workload/payload_pattern.hpp"

namespace rvma {
namespace {

constexpr Mailbox kMailbox{0xbeef};

/// Long enough for every receiver to have posted.
void let_others_post(Driver& driver) { driver.core().compute(Time::from_us(20)); }

std::vector<std::uint8_t> pattern(std::uint64_t seed, std::uint64_t bytes) {
  std::vector<std::uint8_t> data(bytes);
  fill_pattern(data.data(), data.size(), seed, 0);
  return data;
}
VirtualAddress filled(Driver& driver, std::uint64_t seed, std::uint64_t bytes) {
  const VirtualAddress source = driver.space().allocate(bytes, 64);
  const std::vector<std::uint8_t> data = pattern(seed, bytes);
  driver.space().write(source, data.data(), data.size());
  return source;
}
std::vector<std::uint8_t> content(Driver& driver, VirtualAddress head, std::uint64_t bytes) {
  std::vector<std::uint8_t> data(bytes);
  driver.space().read(head, data.data(), bytes);
  return data;
}
/// Puts, waits, and says how it ended.
Outcome put_and_wait(Driver& driver, DestinationRank to, std::uint64_t offset, VirtualAddress source,
                     std::uint64_t bytes, std::uint32_t key = 0) {
  const CompletionPointer completion = driver.allocate_completion();
  EXPECT_EQ(driver.put(to, kMailbox, offset, source, bytes, key, completion), Status::ok);
  return static_cast<Outcome>(driver.wait(completion, WaitHow::mwait).first);
}

TEST(System, APutArrivesByteForByte) {
  SimContext context(1);
  const Config config;
  const ObserverList observers;
  System system(context, config, 2, observers, nullptr);
  EXPECT_EQ(system.nodes(), 2U);
  constexpr std::uint64_t kBytes = 10'000;  // three packets
  constexpr std::uint64_t kOffset = 123;
  bool received = false;
  system.run_on(RankId{1}, [&](Driver& driver) {
    Window window;
    ASSERT_EQ(driver.init_window(kMailbox, kBytes, ThresholdType::bytes, Placement::steered, 7, 0, window), Status::ok);
    const VirtualAddress buffer = driver.space().allocate(20'000, 64);
    const CompletionPointer completion = driver.allocate_completion();
    ASSERT_EQ(driver.post_buffer(window, buffer, 20'000, completion), Status::ok);
    EXPECT_FALSE(driver.test(completion));
    const WaitAnswer answer = driver.wait(completion, WaitHow::mwait);
    EXPECT_EQ(answer.status, Status::ok);
    EXPECT_EQ(answer.first, buffer.value());
    EXPECT_EQ(answer.second, kBytes);
    std::vector<std::uint8_t> expected(20'000);
    fill_pattern(expected.data() + kOffset, kBytes, 5, 0);
    EXPECT_EQ(content(driver, buffer, 20'000), expected);
    std::vector<std::uint8_t> from_outside;
    system.read(NodeId{1}, Pid{0}, buffer, 20'000, from_outside);
    EXPECT_EQ(from_outside, expected);
    EXPECT_EQ(system.load64(NodeId{1}, completion.address), buffer.value());
    received = true;
  });
  Outcome wrong_key{};
  Outcome right_key{};
  system.run_on(RankId{0}, [&](Driver& driver) {
    let_others_post(driver);
    const VirtualAddress source = filled(driver, 5, kBytes);
    const DestinationRank to{system.node_of(RankId{1}), system.pid_of(RankId{1})};
    wrong_key = put_and_wait(driver, to, kOffset, source, kBytes, 8);
    right_key = put_and_wait(driver, to, kOffset, source, kBytes, 7);
  });
  sc_core::sc_start();
  EXPECT_TRUE(received);
  EXPECT_EQ(wrong_key, Outcome::bad_key);
  EXPECT_EQ(right_key, Outcome::ok);
  EXPECT_TRUE(system.driver(RankId{0}).core().finished());
  EXPECT_TRUE(system.driver(RankId{1}).core().finished());
  EXPECT_EQ(system.packets_in_flight(), 0U);
}

TEST(System, ProcessesOfANodeHaveMailboxesAndMemoryOfTheirOwn) {
  SimContext context(1);
  Config config;
  config.workload.ranks_per_node = 2;
  const ObserverList observers;
  constexpr std::uint32_t kRanks = 5;
  System system(context, config, kRanks, observers, nullptr);
  EXPECT_EQ(system.nodes(), 3U);
  EXPECT_EQ(system.node(NodeId{0}).processes(), 2U);
  EXPECT_EQ(system.node(NodeId{2}).processes(), 1U) << "the last node has what is left";
  EXPECT_EQ(system.node_of(RankId{3}), NodeId{1});
  EXPECT_EQ(system.pid_of(RankId{3}), Pid{1});
  EXPECT_EQ(system.pid_of(RankId{4}), Pid{0});

  // Everybody sends to everybody, itself and its neighbour on the node included, at the same mailbox.
  constexpr std::uint64_t kBytes = 6000;
  std::uint32_t done = 0;
  for (std::uint32_t me = 0; me < kRanks; ++me) {
    system.run_on(RankId{me}, [&, me](Driver& driver) {
      EXPECT_EQ(driver.rank(), RankId{me});
      Window window;
      ASSERT_EQ(driver.init_window(kMailbox, kRanks, ThresholdType::ops, Placement::steered, 0, 0, window), Status::ok);
      const VirtualAddress buffer = driver.space().allocate(kRanks * kBytes, 64);
      const CompletionPointer completion = driver.allocate_completion();
      ASSERT_EQ(driver.post_buffer(window, buffer, kRanks * kBytes, completion), Status::ok);
      let_others_post(driver);
      for (std::uint32_t to = 0; to < kRanks; ++to) {
        const VirtualAddress source = filled(driver, 100 * me + to, kBytes);
        EXPECT_EQ(
            put_and_wait(driver, {system.node_of(RankId{to}), system.pid_of(RankId{to})}, me * kBytes, source, kBytes),
            Outcome::ok);
      }
      EXPECT_EQ(driver.wait(completion, WaitHow::poll).second, kRanks * kBytes);
      std::vector<std::uint8_t> expected(kRanks * kBytes);
      for (std::uint32_t from = 0; from < kRanks; ++from) {
        fill_pattern(expected.data() + from * kBytes, kBytes, 100 * from + me, 0);
      }
      EXPECT_EQ(content(driver, buffer, kRanks * kBytes), expected);
      ++done;
    });
  }
  sc_core::sc_start();
  EXPECT_EQ(done, kRanks);
  EXPECT_EQ(system.packets_in_flight(), 0U);
}

/// A machine within the hierarchy of a larger simulation.
class Rack : public sc_core::sc_module {
 public:
  Rack(const sc_core::sc_module_name& name, SimContext& context, const Config& config, const ObserverList& observers)
      : sc_module(name), system(context, config, 2, observers, nullptr) {}
  System system;
};

TEST(System, TwoMachinesInOneSimulationHaveStatisticsOfTheirOwn) {
  SimContext context(1);
  const Config config;
  const ObserverList observers;
  Rack left("left", context, config, observers);
  Rack right("right", context, config, observers);
  std::set<std::string> all;
  std::set<std::string> of_left;
  std::set<std::string> of_right;
  for (const StatsRegistry::Entry& entry : context.stats().entries()) {
    const std::string path = entry.path();
    EXPECT_TRUE(all.insert(path).second) << path;
    if (path.rfind("left.", 0) == 0) of_left.insert(path.substr(5));
    if (path.rfind("right.", 0) == 0) of_right.insert(path.substr(6));
  }
  EXPECT_GT(of_left.size(), 100U);
  EXPECT_EQ(of_left, of_right);
  EXPECT_EQ(of_left.size() + of_right.size(), all.size()) << "no statistic is outside of both";
  // Within a machine, nodes have the same units.
  std::set<std::string> of_node[2];
  for (const std::string& path : of_left) {
    for (const int node : {0, 1}) {
      const std::string prefix = "node" + std::to_string(node) + ".";
      if (path.rfind(prefix, 0) == 0) of_node[node].insert(path.substr(prefix.size()));
    }
  }
  EXPECT_EQ(of_node[0], of_node[1]);
  EXPECT_FALSE(of_node[0].empty());

  // What one does, the other does not count.
  left.system.run_on(RankId{0}, [&](Driver& driver) {
    EXPECT_EQ(put_and_wait(driver, {NodeId{1}, Pid{0}}, 0, filled(driver, 1, 64), 64), Outcome::no_mailbox);
  });
  sc_core::sc_start();
  std::uint64_t calls_left = 0;
  std::uint64_t calls_right = 0;
  for (const StatsRegistry::Entry& entry : context.stats().entries()) {
    if (entry.name != "calls") continue;
    const std::uint64_t value = entry.as<Counter>()->value();
    (entry.unit_path.rfind("left.", 0) == 0 ? calls_left : calls_right) += value;
  }
  EXPECT_GT(calls_left, 0U);
  EXPECT_EQ(calls_right, 0U);
}

TEST(System, ARankWithoutAProgramDoesNothing) {
  SimContext context(1);
  const Config config;
  const ObserverList observers;
  System system(context, config, 2, observers, nullptr);
  bool ran = false;
  system.run_on(RankId{1}, [&](Driver&) { ran = true; });
  sc_core::sc_start();
  EXPECT_TRUE(ran);
  EXPECT_TRUE(system.driver(RankId{1}).core().finished());
}

}  // namespace
}  // namespace rvma
