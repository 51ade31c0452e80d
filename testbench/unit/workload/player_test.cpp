// The player: programs run in order, barriers hold, buffers and puts are given back, and a program that cannot end says
// what it waits for. It plays on a whole machine, as it does in a run.
#include "workload/player.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "platform/system.hpp"

namespace rvma {
namespace {

using testing::ElementsAre;

/// Notes what programs do.
class Log : public PlayerObserver {
 public:
  void put_issued(const PutIssue& put) override {
    puts.push_back(put);
    // Names live as long as the call only.
    put_names.push_back(put.name == nullptr ? std::optional<NameRef>{} : *put.name);
    puts.back().name = nullptr;
    open_puts.insert({put.node.value(), put.word.value()});
    most_open_puts = std::max(most_open_puts, open_puts.size());
  }
  void put_freed(NodeId node, PhysicalAddress word) override {
    EXPECT_EQ(open_puts.erase({node.value(), word.value()}), 1U);
  }
  void post_issued(const BufferPost& post) override {
    posts.push_back(post);
    live_buffers.insert({post.node.value(), post.word.value()});
    most_live_buffers = std::max(most_live_buffers, live_buffers.size());
  }
  void buffer_unnamed(NodeId node, PhysicalAddress word) override {
    EXPECT_TRUE(unnamed.insert({node.value(), word.value()}).second) << "told once";
  }
  void buffer_freed(NodeId node, PhysicalAddress word) override {
    EXPECT_EQ(live_buffers.erase({node.value(), word.value()}), 1U);
    EXPECT_EQ(unnamed.erase({node.value(), word.value()}), 1U) << "freed while it may be named";
  }
  void wait_seen(NodeId, PhysicalAddress, Time at) override { seen.push_back(at); }
  void call_returned(RankId rank, OperationKind op, const NameRef*, Status status, const std::string& value,
                     Time) override {
    calls.push_back(std::to_string(rank.value()) + " " + ValueText<OperationKind>::print(op) + " " +
                    ValueText<Status>::print(status) + " " + value);
  }
  void operation_done(RankId rank) override { done[rank.value()].push_back(SimContext::now()); }

  std::vector<PutIssue> puts;
  std::vector<std::optional<NameRef>> put_names;
  std::vector<BufferPost> posts;
  std::vector<Time> seen;
  std::vector<std::string> calls;
  std::map<std::uint32_t, std::vector<Time>> done;  ///< when each operation of a rank ended
  std::set<std::pair<std::uint32_t, std::uint64_t>> open_puts;
  std::set<std::pair<std::uint32_t, std::uint64_t>> live_buffers;
  std::set<std::pair<std::uint32_t, std::uint64_t>> unnamed;
  std::size_t most_open_puts = 0;
  std::size_t most_live_buffers = 0;
};

class Machine {
 public:
  explicit Machine(const std::string& text, const Config& the_config = {}) : config(the_config) {
    ErrorList errors;
    trace = Trace::from_text("rvma-trace 1\n" + text, "test", errors);
    for (const Error& error : errors.shown()) ADD_FAILURE() << error.to_string();
    system = std::make_unique<System>(context, config, trace->ranks(), observers, nullptr);
    std::vector<RankHome> homes;
    for (std::uint32_t r = 0; r < trace->ranks(); ++r) {
      homes.push_back({system->node_of(RankId{r}), system->pid_of(RankId{r}), &system->driver(RankId{r})});
    }
    player = std::make_unique<Player>(*trace, config.workload, config.nic.history, homes,
                                      std::vector<PlayerObserver*>{&log});
    for (std::uint32_t r = 0; r < trace->ranks(); ++r) {
      system->run_on(RankId{r}, [this, r](Driver&) { player->play(RankId{r}); });
    }
  }
  void run() { sc_core::sc_start(); }
  Time done(std::uint32_t rank, std::size_t operation) const { return log.done.at(rank).at(operation); }

  Config config;
  SimContext context{1};
  ObserverList observers;
  Log log;
  std::unique_ptr<Trace> trace;
  std::unique_ptr<System> system;
  std::unique_ptr<Player> player;
};

// ------------------------------------------------------------------------------------------------------------ barriers

TEST(Player, ABarrierReleasesAllWhenTheLastArrives) {
  Machine machine("ranks 3\nrank 0\nbarrier\nrank 1\ncompute 50ns\nbarrier\nrank 2\ncompute 20ns\nbarrier\n");
  machine.run();
  EXPECT_EQ(machine.done(0, 0), Time::from_ns(50));
  EXPECT_EQ(machine.done(1, 1), Time::from_ns(50));
  EXPECT_EQ(machine.done(2, 1), Time::from_ns(50));
  EXPECT_EQ(machine.player->ranks_finished(), 3U);
}

TEST(Player, TheLastToArriveThatComesBackAtOnceIsNotReleasedEarly) {
  // Rank 0 completes the first barrier and is at the second before rank 1 has woken up from the first.
  Machine machine("ranks 2\nrank 0\ncompute 10ns\nbarrier\nbarrier\nrank 1\nbarrier\ncompute 100ns\nbarrier\n");
  machine.run();
  EXPECT_EQ(machine.done(0, 1), Time::from_ns(10));
  EXPECT_EQ(machine.done(1, 0), Time::from_ns(10));
  EXPECT_EQ(machine.done(0, 2), Time::from_ns(110)) << "rank 1 arrives only then";
  EXPECT_EQ(machine.done(1, 2), Time::from_ns(110));
}

TEST(Player, BarriersOneBehindTheOtherAtOneInstantLoseNobody) {
  Machine machine(
      "ranks 3\nrank 0\nrepeat 50\nbarrier\nend\nrank 1\nrepeat 50\nbarrier\nend\nrank 2\nrepeat 50\nbarrier\nend\n");
  machine.run();
  EXPECT_EQ(machine.player->ranks_finished(), 3U);
}

TEST(Player, ARankThatHasEndedIsNotWaitedFor) {
  Machine machine("ranks 3\nrank 0\nbarrier\nbarrier\nrank 1\nbarrier\ncompute 30ns\n");
  machine.run();
  EXPECT_EQ(machine.done(0, 0), Time::zero()) << "rank 2 has an empty program";
  EXPECT_EQ(machine.done(0, 1), Time::from_ns(30)) << "rank 1 ends then";
  EXPECT_EQ(machine.player->ranks_finished(), 3U);
}

TEST(Player, RandomBarriersAllMeetWhenTheLastArrives) {
  const std::uint64_t seed = 20'260'101;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  constexpr std::uint32_t kRanks = 4;
  constexpr std::size_t kMeetings = 40;
  std::string text = "ranks " + std::to_string(kRanks) + "\n";
  std::vector<std::vector<std::int64_t>> computes(kRanks);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    text += "rank " + std::to_string(rank) + "\n";
    for (std::size_t i = 0; i < kMeetings; ++i) {
      computes[rank].push_back(static_cast<std::int64_t>(1 + random.below(4)));
      text += "compute " + std::to_string(computes[rank].back()) + "ns\nbarrier\n";
    }
  }
  Machine machine(text);
  machine.run();
  Time met;
  for (std::size_t meeting = 0; meeting < kMeetings; ++meeting) {
    Time last;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      last = std::max(last, met + Time::from_ns(computes[rank][meeting]));
    }
    met = last;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(machine.done(rank, 2 * meeting + 1), met) << "rank " << rank << ", meeting " << meeting;
    }
  }
}

TEST(Player, ABarrierWaitsUntilTheNicHasExecutedEarlierCalls) {
  Machine machine(
      "ranks 2\nrank 1\ninit_window w mailbox=1 threshold=64B\npost_buffer w as=b size=64B\nbarrier\nwait b\n"
      "rank 0\nbarrier\nput as=p rank=1 mailbox=1 size=64B\nwait p\n");
  machine.run();
  EXPECT_GT(machine.done(0, 0), machine.done(1, 1)) << "the post took effect later than its call returned";
  EXPECT_EQ(machine.done(0, 0), machine.done(1, 2));
  EXPECT_EQ(machine.player->ranks_finished(), 2U);
}

// -----------------------------------------------------------------------------------------------------------
// operations

TEST(Player, OperationsRunInOrderAndTellWhatTheyDo) {
  Machine machine(
      "ranks 2\nrank 1\ninit_window w mailbox=0xbeef threshold=2op placement=managed key=9\n"
      "post_buffer w as=b size=4KiB seed=3\nbarrier\nwait b\nget_epoch w\ninc_epoch w\nget_buf_ptrs w n=1\n"
      "rank 0\nbarrier\nput as=p rank=1 mailbox=0xbeef size=100B key=9\n"
      "put rank=1 mailbox=0xbeef size=50B offset=7 key=9 seed=77\nwait all\nwait all\n");
  machine.run();
  EXPECT_EQ(machine.player->ranks_finished(), 2U);
  EXPECT_THAT(machine.log.calls, ElementsAre("1 init_window ok ", "1 get_epoch ok 1", "1 inc_epoch no_buffer ",
                                             "1 get_buf_ptrs ok 0:150"));
  ASSERT_EQ(machine.log.puts.size(), 2U);
  EXPECT_EQ(machine.log.puts[0].seed, 0U) << "the put's index";
  EXPECT_EQ(machine.trace->spelling(RankId{0}, machine.log.put_names[0].value()), "p");
  EXPECT_EQ(machine.log.puts[1].seed, 77U);
  EXPECT_EQ(machine.log.puts[1].offset, 7U);
  EXPECT_EQ(machine.log.puts[1].key, 9U);
  EXPECT_EQ(machine.log.puts[1].destination_node, NodeId{1});
  ASSERT_EQ(machine.log.posts.size(), 1U);
  EXPECT_TRUE(machine.log.posts[0].has_seed);
  EXPECT_EQ(machine.log.posts[0].head.value() % 64, 0U);
  ASSERT_EQ(machine.log.seen.size(), 1U);
  EXPECT_EQ(machine.log.seen[0], machine.done(1, 3));
  EXPECT_EQ(machine.done(0, 4), machine.done(0, 3)) << "nothing is outstanding any more";
}

TEST(Player, MemoryDoesNotGrowWithTheRun) {
  Config config;
  config.nic.history = 4;
  Machine machine(
      "ranks 2\nrank 1\ninit_window w mailbox=1 threshold=64B\nrepeat 300\npost_buffer w as=b size=64B\nbarrier\n"
      "wait b\nend\nrank 0\nrepeat 300\nbarrier\nput rank=1 mailbox=1 size=64B\nend\nwait all\n",
      config);
  machine.run();
  EXPECT_EQ(machine.player->ranks_finished(), 2U);
  EXPECT_EQ(machine.log.puts.size(), 300U);
  EXPECT_LE(machine.log.most_live_buffers, 4U + 2U) << "history and the one that is posted";
  EXPECT_LE(machine.log.most_open_puts, 8U);
  EXPECT_TRUE(machine.log.open_puts.empty());
}

TEST(Player, APutThatIsRefusedDoesNotStopItsProgram) {
  Machine machine("ranks 2\nrank 0\nput as=p rank=1 mailbox=1 size=64B\nwait p\ncompute 1ns\n");
  machine.run();
  EXPECT_EQ(machine.player->ranks_finished(), 2U);
  EXPECT_EQ(machine.log.done.at(0).size(), 3U);
}

// ------------------------------------------------------------------------------------------------------ waits for ever

TEST(Player, SaysWhatItWaitsFor) {
  Machine machine(
      "ranks 4\nrank 0\ncompute 1ns\nrank 1\ninit_window w mailbox=1 threshold=64B\nrepeat 3\n"
      "post_buffer w as=b size=64B\nend\nwait b.2\n"
      "rank 2\nbarrier\nrank 3\ninit_window w mailbox=1 threshold=64B\npost_buffer w as=c size=64B\nwait c how=poll\n");
  machine.run();
  EXPECT_EQ(machine.player->ranks_finished(), 1U);
  EXPECT_THAT(machine.player->waiting(),
              ElementsAre("test:10:1: error: rank 1 waits for b.2", "test:12:1: error: rank 2 waits for the barrier",
                          "test:16:1: error: rank 3 waits for c"));
}

}  // namespace
}  // namespace rvma
