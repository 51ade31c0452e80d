// Patterns of parallel programs: what they send, by closed formulas, and that they run whatever the timing. See
// ideal_machine.hpp: no put may be refused, every buffer must complete and every rank must end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ideal_machine.hpp"

namespace rvma {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr Promise kInOrder{true, true, true};

std::string text(std::uint64_t number) { return std::to_string(number); }

TEST(Alltoall, EveryRankReachesEveryOther) {
  for (const std::uint64_t ranks : {2, 3, 8, 17}) {
    for (const std::uint64_t iterations : {1, 2, 3, 7}) {
      for (const std::string unroll : {"auto", "1", "2", "3", "100"}) {
        SCOPED_TRACE(text(ranks) + " ranks, " + text(iterations) + " iterations, unroll " + unroll);
        const Played outcome = play("alltoall",
                                    {{"ranks", text(ranks)},
                                     {"iterations", text(iterations)},
                                     {"unroll", unroll},
                                     {"size", "100"},
                                     {"compute", "3us"}},
                                    kInOrder);
        EXPECT_EQ(outcome.messages, iterations * ranks * (ranks - 1));
        EXPECT_EQ(outcome.bytes, 100 * outcome.messages);
        EXPECT_EQ(outcome.buffers, iterations * ranks);
      }
    }
  }
  EXPECT_EQ(play("alltoall", {{"size", "0"}, {"iterations", "3"}}).messages, 3U * 16 * 15);
}

/// The puts of a trace, in order, with the places where they land.
std::vector<Operation> puts_of(const Trace& trace, std::uint32_t rank) {
  std::vector<Operation> puts;
  const auto cursor = trace.cursor(RankId{rank});
  while (const Operation* operation = cursor->next()) {
    if (operation->kind == OperationKind::put) puts.push_back(*operation);
  }
  return puts;
}

TEST(Alltoall, OrderIsShiftedAndPlacesAreTheSenders) {
  const auto trace = checked(generated("alltoall", {{"ranks", "5"}, {"iterations", "1"}, {"size", "64"}}));
  for (std::uint32_t rank = 0; rank < 5; ++rank) {
    const std::vector<Operation> puts = puts_of(*trace, rank);
    ASSERT_EQ(puts.size(), 4U);
    for (std::uint32_t i = 0; i < 4; ++i) {
      EXPECT_EQ(puts[i].rank.value(), (rank + i + 1) % 5);
      EXPECT_EQ(puts[i].offset, 64U * rank);
    }
  }
}

TEST(Allreduce, RingSendsTwiceTheVector) {
  for (const std::uint64_t ranks : {2, 3, 4, 9, 16, 17, 18, 33, 40}) {
    for (const std::uint64_t iterations : {1, 2, 5}) {
      for (const std::string per_byte : {"0ps", "10ps"}) {
        SCOPED_TRACE(text(ranks) + " ranks, " + text(iterations) + " iterations, " + per_byte);
        const Played outcome = play("allreduce",
                                    {{"ranks", text(ranks)},
                                     {"iterations", text(iterations)},
                                     {"size", "1000"},
                                     {"compute-per-byte", per_byte}},
                                    kInOrder);
        EXPECT_EQ(outcome.messages, iterations * ranks * 2 * (ranks - 1));
        EXPECT_EQ(outcome.bytes, outcome.messages * ((1000 + ranks - 1) / ranks));
        EXPECT_EQ(outcome.buffers, outcome.messages);
      }
    }
  }
}

TEST(Allreduce, RecursiveDoublingExchangesTheVectorInLogarithmicallyManySteps) {
  for (const std::uint64_t ranks : {2, 3, 4, 5, 7, 8, 15, 16, 17, 32, 33}) {
    for (const std::uint64_t iterations : {1, 2, 5, 11}) {
      SCOPED_TRACE(text(ranks) + " ranks, " + text(iterations) + " iterations");
      std::uint64_t core = 1;
      std::uint64_t bits = 0;
      for (; core * 2 <= ranks; core *= 2) ++bits;
      const Played outcome = play("allreduce",
                                  {{"ranks", text(ranks)},
                                   {"iterations", text(iterations)},
                                   {"size", "1000"},
                                   {"algorithm", "recursive-doubling"},
                                   {"compute-per-byte", "10ps"}},
                                  kInOrder);
      EXPECT_EQ(outcome.messages, iterations * (core * bits + 2 * (ranks - core)));
      EXPECT_EQ(outcome.bytes, 1000 * outcome.messages);
    }
  }
}

/// What a vector of one contribution a rank becomes: sets of ranks travel with the messages of a trace that is played
/// in order. Each rank must end with all.
TEST(Allreduce, RecursiveDoublingReducesWhatAllContribute) {
  for (const std::uint32_t ranks : {2U, 3U, 6U, 8U, 13U}) {
    const auto trace = checked(
        generated("allreduce", {{"ranks", text(ranks)}, {"iterations", "1"}, {"algorithm", "recursive-doubling"}}));
    std::vector<std::set<std::uint32_t>> has(ranks);
    std::vector<std::unique_ptr<Trace::Cursor>> cursors;
    std::vector<const Operation*> next;
    std::vector<std::map<std::string, std::uint64_t>> mailbox_of(ranks);  // by buffer's name
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::set<std::uint32_t>> arrived;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      has[rank] = {rank};
      cursors.push_back(trace->cursor(RankId{rank}));
      next.push_back(cursors.back()->next());
    }
    for (bool progress = true; progress;) {
      progress = false;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        while (next[rank] != nullptr) {
          const Operation& op = *next[rank];
          const auto spell = [&](const NameRef& name) { return trace->spelling(RankId{rank}, name); };
          if (op.kind == OperationKind::put) arrived[{op.rank.value(), op.mailbox.value()}] = has[rank];
          if (op.kind == OperationKind::post_buffer)
            mailbox_of[rank][spell(op.name)] = 1 + std::stoull(spell(op.operands[0]).substr(1));
          if (op.kind == OperationKind::wait) {
            const auto found = arrived.find({rank, mailbox_of[rank].at(spell(op.operands[0]))});
            if (found == arrived.end()) break;
            has[rank].insert(found->second.begin(), found->second.end());
          }
          next[rank] = cursors[rank]->next();
          progress = true;
        }
      }
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) EXPECT_EQ(has[rank].size(), ranks) << "rank " << rank;
  }
}

TEST(Allreduce, ATraceOfARingDoesNotGrowWithItsSteps) {
  // A rank of 2,000 takes 3,998 steps.
  EXPECT_LT(generated("allreduce", {{"ranks", "2000"}}).size() / 2000, 4096U);
  EXPECT_LT(generated("allreduce", {{"ranks", "2000"}, {"compute-per-byte", "1ps"}}).size() / 2000, 8192U);
}

TEST(Halo3d, MessagesAndBytesFollowTheGrid) {
  const std::uint64_t shapes[][3] = {{2, 1, 1}, {1, 1, 3}, {2, 2, 1}, {3, 2, 2}, {3, 3, 3}, {4, 1, 2}};
  const std::uint64_t grid[] = {5, 3, 2};
  for (const auto& shape : shapes) {
    for (const bool periodic : {false, true}) {
      for (const std::uint64_t iterations : {1, 2, 5}) {
        SCOPED_TRACE(text(shape[0]) + "x" + text(shape[1]) + "x" + text(shape[2]) + (periodic ? " periodic" : ""));
        std::uint64_t messages = 0;
        std::uint64_t cells = 0;
        for (int direction = 0; direction < 27; ++direction) {
          const int step[] = {direction % 3 - 1, direction / 3 % 3 - 1, direction / 9 - 1};
          if (direction == 13) continue;
          std::uint64_t pairs = 1;
          std::uint64_t of_message = 1;
          for (int axis = 0; axis < 3; ++axis) {
            pairs *= step[axis] != 0 && !periodic ? shape[axis] - 1 : shape[axis];
            of_message *= step[axis] != 0 ? 1 : grid[axis];
          }
          messages += pairs;
          cells += pairs * of_message;
        }
        GeneratorArguments arguments{{"shape", text(shape[0]) + "x" + text(shape[1]) + "x" + text(shape[2])},
                                     {"iterations", text(iterations)},
                                     {"nx", "5"},
                                     {"ny", "3"},
                                     {"nz", "2"},
                                     {"fields-per-cell", "3"},
                                     {"datatype-width", "4"}};
        if (periodic) arguments["periodic"] = "";
        const Played outcome = play("halo3d", arguments);
        EXPECT_EQ(outcome.messages, iterations * messages);
        EXPECT_EQ(outcome.bytes, iterations * cells * 12);
        EXPECT_EQ(outcome.buffers, iterations * shape[0] * shape[1] * shape[2]);
      }
    }
  }
}

TEST(Halo3d, TheRankInTheMiddleHasSixFacesTwelveEdgesAndEightCorners) {
  const auto trace =
      checked(generated("halo3d", {{"shape", "3x3x3"}, {"iterations", "1"}, {"nx", "4"}, {"ny", "5"}, {"nz", "6"}}));
  std::map<std::uint64_t, std::set<std::uint64_t>> ranks_by_size;
  std::map<std::uint64_t, std::uint64_t> place_of;  // offset to the end there
  for (const Operation& put : puts_of(*trace, 13)) ranks_by_size[put.size].insert(put.rank.value());
  EXPECT_EQ(ranks_by_size[8 * 5 * 6], (std::set<std::uint64_t>{12, 14}));
  EXPECT_EQ(ranks_by_size[8 * 4 * 6], (std::set<std::uint64_t>{10, 16}));
  EXPECT_EQ(ranks_by_size[8 * 4 * 5], (std::set<std::uint64_t>{4, 22}));
  EXPECT_EQ(ranks_by_size[8 * 4].size(), 4U);
  EXPECT_EQ(ranks_by_size[8 * 5].size(), 4U);
  EXPECT_EQ(ranks_by_size[8 * 6].size(), 4U);
  EXPECT_EQ(ranks_by_size[8], (std::set<std::uint64_t>{0, 2, 6, 8, 18, 20, 24, 26}));
  // What the others send to it lies side by side, without gaps: the whole halo.
  for (std::uint32_t rank = 0; rank < 27; ++rank) {
    for (const Operation& put : puts_of(*trace, rank)) {
      if (put.rank.value() == 13) {
        EXPECT_TRUE(place_of.emplace(put.offset, put.offset + put.size).second);
      }
    }
  }
  ASSERT_EQ(place_of.size(), 26U);
  std::uint64_t end = 0;
  for (const auto& [offset, its_end] : place_of) {
    EXPECT_EQ(offset, end);
    end = its_end;
  }
  EXPECT_EQ(end, 8U * (6 * 7 * 8 - 4 * 5 * 6));
}

TEST(Halo3d, AutomaticShapeIsNearToACube) {
  for (const auto& [ranks, shape] : std::map<std::string, std::string>{
           {"64", "4x4x4"}, {"8192", "32x16x16"}, {"12", "3x2x2"}, {"7", "7x1x1"}, {"1000", "10x10x10"}}) {
    EXPECT_THAT(generated("halo3d", {{"ranks", ranks}, {"iterations", "1"}}).substr(0, 60),
                HasSubstr("halo3d: " + shape + " ranks"));
  }
  EXPECT_EQ(generated("halo3d", {{"ranks", "12"}}), generated("halo3d", {{"shape", "3x2x2"}}));
  EXPECT_EQ(generated("halo3d", {{"ranks", "12"}}), generated("halo3d", {{"ranks", "12"}, {"shape", "3x2x2"}}));
}

TEST(Halo3d, ATraceDoesNotGrowWithItsIterations) {
  const auto size = [](const char* n) { return generated("halo3d", {{"iterations", n}}).size(); };
  EXPECT_LT(size("1000000"), 2 * size("12"));  // 12 iterations of 26 puts in a loop, and 4 behind it
  EXPECT_THAT(generated("halo3d", {{"compute", "auto"}, {"iterations", "1"}}), HasSubstr("compute 851.968us"));
  EXPECT_THAT(generated("halo3d", {}), Not(HasSubstr("compute ")));
}

TEST(Sweep3d, MessagesAndBytesFollowTheGrid) {
  const std::uint64_t shapes[][2] = {{2, 1}, {1, 3}, {2, 2}, {4, 3}, {5, 5}};
  for (const auto& shape : shapes) {
    for (const std::uint64_t kba : {1, 2, 3, 6}) {
      for (const std::uint64_t iterations : {1, 2, 3}) {
        for (const std::string unroll : {"1", "2", "3"}) {
          SCOPED_TRACE(text(shape[0]) + "x" + text(shape[1]) + " kba " + text(kba) + ", " + text(iterations) +
                       " iterations, unroll " + unroll);
          const Played outcome = play("sweep3d",
                                      {{"shape", text(shape[0]) + "x" + text(shape[1])},
                                       {"nx", "3"},
                                       {"ny", "5"},
                                       {"nz", "6"},
                                       {"kba", text(kba)},
                                       {"iterations", text(iterations)},
                                       {"unroll", unroll},
                                       {"fields-per-cell", "2"},
                                       {"datatype-width", "4"}},
                                      kInOrder);
          const std::uint64_t in_x = (shape[0] - 1) * shape[1];
          const std::uint64_t in_y = shape[0] * (shape[1] - 1);
          EXPECT_EQ(outcome.messages, iterations * 8 * (6 / kba) * (in_x + in_y));
          EXPECT_EQ(outcome.bytes, iterations * 8 * 6 * (in_x * 5 + in_y * 3) * 8);
          EXPECT_EQ(outcome.buffers, outcome.messages);
        }
      }
    }
  }
}

/// A wave front: from each corner in turn, and nobody sends a block before it has what comes before it.
TEST(Sweep3d, SweepsComeFromAllCorners) {
  const auto trace = checked(generated("sweep3d", {{"shape", "3x3"}, {"nz", "4"}, {"kba", "4"}}));
  // The rank in the middle, 4, sends to east and south, west and south, west and north, east and north; twice.
  std::vector<std::uint32_t> to;
  for (const Operation& put : puts_of(*trace, 4)) to.push_back(put.rank.value());
  const std::vector<std::uint32_t> once = {5, 7, 3, 7, 3, 1, 5, 1};
  std::vector<std::uint32_t> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(to, twice);
  // It waits before it sends; the corner, 0, where the first sweep begins, does not.
  const std::string all = generated("sweep3d", {{"shape", "3x3"}, {"nz", "4"}, {"kba", "4"}});
  const std::string middle = all.substr(all.find("rank 4\n"), all.find("rank 5\n") - all.find("rank 4\n"));
  EXPECT_LT(middle.find("wait bw0 bn0"), middle.find("put as=pe0"));
  const std::string corner = all.substr(all.find("rank 0\n"), all.find("rank 1\n") - all.find("rank 0\n"));
  EXPECT_LT(corner.find("put as=pe0"), corner.find("wait "));
  EXPECT_THAT(all, HasSubstr("compute 4.48us"));
}

TEST(Sweep3d, BuffersPostedAtATimeAreAboutThreeSweeps) {
  const auto trace = checked(
      generated("sweep3d", {{"shape", "4x4"}, {"nz", "20"}, {"kba", "1"}, {"unroll", "3"}, {"iterations", "3"}}));
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    IdealMachine machine(*trace, seed, kInOrder);
    machine.run();
    EXPECT_LE(machine.most_posted(), 3U * 20 + 2);
  }
}

TEST(Kv, EveryRequestIsAnswered) {
  for (const std::uint64_t ranks : {2, 3, 8, 29}) {
    for (const std::uint64_t servers : {1, 2, 7}) {
      if (servers >= ranks) continue;
      for (const std::uint64_t depth : {1, 3, 50}) {
        SCOPED_TRACE(text(ranks) + " ranks, " + text(servers) + " servers, depth " + text(depth));
        const Played outcome = play("kv", {{"ranks", text(ranks)},
                                           {"servers", text(servers)},
                                           {"count", "20"},
                                           {"depth", text(depth)},
                                           {"size", "100"},
                                           {"header", "10"},
                                           {"reads", "50"},
                                           {"seed", text(ranks + depth)}});
        EXPECT_EQ(outcome.messages, 2 * 20 * (ranks - servers));
        EXPECT_EQ(outcome.bytes, 20 * (ranks - servers) * (2 * 10 + 100));
        EXPECT_EQ(outcome.buffers, outcome.messages);
      }
    }
  }
}

/// Requests by server, from the mailboxes of the puts of clients.
std::map<std::uint64_t, std::uint64_t> requests_by_server(const GeneratorArguments& arguments) {
  const auto trace = checked(generated("kv", arguments));
  std::map<std::uint64_t, std::uint64_t> requests;
  for (std::uint32_t rank = 0; rank < trace->ranks(); ++rank) {
    for (const Operation& put : puts_of(*trace, rank)) {
      if (put.mailbox.value() != 1) ++requests[put.rank.value()];
    }
  }
  return requests;
}

TEST(Kv, KeysAreZipfDistributed) {
  // A single key has one server; with uniform keys all servers have about the same.
  const GeneratorArguments base{{"ranks", "40"}, {"servers", "4"}, {"count", "1000"}};
  GeneratorArguments arguments = base;
  arguments["keys"] = "1";
  EXPECT_EQ(requests_by_server(arguments).size(), 1U);
  arguments = base;
  arguments["skew"] = "0";
  for (const auto& [server, requests] : requests_by_server(arguments))
    EXPECT_NEAR(static_cast<double>(requests), 9000, 500);
  // With a skew of 1, the first key of 1,000 has a share of 1 / H(1000) = 13.4 %, and with a skew of 3 one of
  // 1 / zeta(3) = 83.2 %; the rest of each is spread over all 32 servers.
  arguments = {{"ranks", "68"}, {"servers", "32"}, {"count", "1000"}, {"keys", "1000"}, {"skew", "1"}};
  for (const auto& [skew, share] : std::map<std::string, double>{{"1.00", 0.134}, {"3", 0.832}}) {
    arguments["skew"] = skew;
    std::uint64_t most = 0;
    for (const auto& [server, requests] : requests_by_server(arguments)) most = std::max(most, requests);
    EXPECT_GT(static_cast<double>(most), 36000 * (share - 0.01));
    EXPECT_LT(static_cast<double>(most), 36000 * (share + 0.10));
  }
}

TEST(Kv, ReadsBringTheValueAndWritesTakeIt) {
  const std::string reads = generated("kv", {{"reads", "100"}, {"size", "1KiB"}, {"header", "32"}});
  EXPECT_THAT(reads, HasSubstr("mailbox=1 size=1056B"));
  const std::string writes = generated("kv", {{"reads", "0"}, {"size", "1KiB"}, {"header", "32"}});
  EXPECT_THAT(writes, HasSubstr("mailbox=1 size=32B"));
  EXPECT_THAT(writes, Not(HasSubstr("mailbox=1 size=1056B")));
}

TEST(Storm, EndsWhateverTheTimingAndUsesAll) {
  constexpr Promise kStorm{false, false, false};
  std::uint64_t retried = 0;
  std::uint64_t returned = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::uint64_t ranks = 1 + seed % 9;
    const Played outcome = play("storm",
                                {{"ranks", text(ranks)},
                                 {"count", "70"},
                                 {"seed", text(seed)},
                                 {"late", "30"},
                                 {"size", seed % 4 == 0 ? "1" : "9000"},
                                 {"mailboxes", text(1 + seed % 5)}},
                                kStorm);
    EXPECT_EQ(outcome.messages, 70 * ranks);
    retried += outcome.retried;
    returned += outcome.returned;
  }
  EXPECT_GT(retried, 100U);
  EXPECT_GT(returned, 20U);
  EXPECT_EQ(play("storm", {{"size", "0"}, {"count", "10"}}, kStorm).bytes, 0U);
  // Without late buffers nothing is refused.
  EXPECT_EQ(play("storm", {{"late", "0"}}, Promise{true, false, false}).messages, 800U);
}

TEST(Storm, MixesKinds) {
  const std::string all = generated("storm", {{"count", "200"}});
  for (const char* part :
       {"placement=managed", " key=", "op\n", "op ", " offset=", "inc_epoch", "close_window", "how=poll"})
    EXPECT_THAT(all, HasSubstr(part));
}

TEST(Mailboxes, EveryMessageHasItsPlaceAndEveryBufferFills) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Played outcome = play("mailboxes",
                                {{"ranks", text(1 + seed)},
                                 {"mailboxes", text(10 * seed)},
                                 {"count", "90"},
                                 {"seed", text(seed)},
                                 {"skew", seed % 2 == 0 ? "0" : "0.99"},
                                 {"size", "700"}},
                                Promise{true, false, false});
    EXPECT_EQ(outcome.messages, 90 * seed);
    EXPECT_EQ(outcome.bytes, 90 * seed * 700);
  }
}

TEST(Mailboxes, SkewMakesAFewFrequent) {
  const auto used = [](const char* skew) {
    const std::string all = generated("mailboxes", {{"mailboxes", "1000"}, {"count", "1000"}, {"skew", skew}});
    std::size_t buffers = 0;
    for (std::size_t at = all.find("post_buffer"); at != std::string::npos; at = all.find("post_buffer", at + 1))
      ++buffers;
    return buffers;
  };
  // Uniform: 1000 (1 - 1/e) mailboxes, give or take 16.
  EXPECT_NEAR(static_cast<double>(used("0")), 632, 80);
  EXPECT_LT(used("0.99"), 500U);
  EXPECT_LT(used("3"), 100U);
}

TEST(Patterns, SameOptionsSameBytesAndSeedsMatter) {
  for (const char* pattern : {"alltoall", "allreduce", "halo3d", "sweep3d", "kv", "mailboxes", "storm"})
    EXPECT_EQ(generated(pattern, {}), generated(pattern, {})) << pattern;
  for (const char* pattern : {"kv", "mailboxes", "storm"})
    EXPECT_NE(generated(pattern, {{"seed", "7"}}), generated(pattern, {{"seed", "8"}})) << pattern;
}

/// The text that seed 1 gives here, it gives everywhere: no floating point, no library's random numbers.
TEST(Patterns, KvIsTheSameOnEveryMachine) {
  const std::string all = generated("kv", {});
  std::uint64_t hash = 0;
  for (const char c : all) hash = mix64(hash ^ static_cast<unsigned char>(c));
  EXPECT_EQ(hash, 12618526062955805458ULL);
}

TEST(Patterns, WaitAsAsked) {
  for (const char* pattern : {"alltoall", "allreduce", "halo3d", "sweep3d", "kv"}) {
    EXPECT_THAT(generated(pattern, {{"how", "poll"}}), HasSubstr(" how=poll\n")) << pattern;
    EXPECT_THAT(generated(pattern, {}), Not(HasSubstr("how="))) << pattern;
  }
}

TEST(Patterns, RefuseWhatTheyCannotDo) {
  const struct {
    const char* pattern;
    GeneratorArguments arguments;
    const char* says;
    const char* hint;
  } cases[] = {
      {"alltoall", {{"ranks", "1"}}, "--ranks: '1' is too small", "at least 2"},
      {"alltoall", {{"ranks", "0"}}, "--ranks: '0' is too small", "at least 2"},
      {"alltoall", {{"size", "1GiB"}, {"ranks", "17"}}, "--size: ", "at most"},
      {"alltoall", {{"unroll", "0"}}, "--unroll: '0' is too small", "at least 1"},
      {"allreduce", {{"size", "0"}}, "--size: '0' is too small", "at least 1B"},
      {"allreduce", {{"algorithm", "rong"}}, "--algorithm: unknown algorithm 'rong'", "did you mean 'ring'?"},
      {"allreduce", {{"compute-per-byte", "2ms"}}, "--compute-per-byte: it is too long", "1ms"},
      {"allreduce", {{"compute-per-byte", "2"}}, "--compute-per-byte: ", "ns"},
      {"halo3d", {{"shape", "3x3"}}, "--shape: '3x3' is no shape", "AxBxC"},
      {"halo3d", {{"shape", "3x3x3x3"}}, "--shape: ", "AxBxC"},
      {"halo3d", {{"shape", "3x0x3"}}, "--shape: ", "at least 1"},
      {"halo3d", {{"shape", "3x3x"}}, "--shape: ", "AxBxC"},
      {"halo3d", {{"shape", "-1x3x3"}}, "--shape: ", "AxBxC"},
      {"halo3d", {{"shape", "1x1x1"}}, "--shape: '1x1x1' is too small", "at least 2"},
      {"halo3d", {{"shape", "1048576x1048576x1048576"}}, "has too many ranks", "at most 1048576"},
      {"halo3d", {{"shape", "2x2x2"}, {"ranks", "9"}}, "--ranks: '9' is not the number of ranks", "expected 8"},
      {"halo3d", {{"nx", "0"}}, "--nx: '0' is too small", "at least 1"},
      {"halo3d", {{"ny", "65536"}, {"nz", "65536"}}, "--nx: a face is too large", "1GiB"},
      {"halo3d", {{"nx", "65536"}, {"ny", "65536"}, {"nz", "65536"}, {"compute", "auto"}}, "--compute: ", "a time"},
      {"sweep3d", {{"shape", "3x3x3"}}, "--shape: ", "AxB"},
      {"sweep3d", {{"kba", "7"}}, "--kba: 7 does not divide --nz 30", "divisor"},
      {"sweep3d", {{"kba", "1"}, {"nz", "2000"}}, "--kba: too many blocks", "at most 1024"},
      {"sweep3d", {{"kba", "60000"}, {"nz", "60000"}, {"nx", "60000"}}, "--kba: a block is too large", "1GiB"},
      {"kv", {{"servers", "16"}}, "--servers: 16 of 16 ranks leave no client", "at most 15"},
      {"kv", {{"skew", "0.999"}}, "--skew: '0.999'", "two places"},
      {"kv", {{"skew", "-1"}}, "--skew: '-1'", "two places"},
      {"kv", {{"skew", "11"}}, "--skew: '11' is too large", "at most 10"},
      {"kv", {{"reads", "101"}}, "--reads: ", "100"},
      {"kv", {{"ranks", "1000000"}, {"count", "1000"}}, "--count: too many requests", "at most 19"},
      {"kv", {{"header", "0"}}, "--header: '0' is too small", "at least 1B"},
      {"storm", {{"late", "101"}}, "--late: ", "100"},
      {"storm", {{"mailboxes", "0"}}, "--mailboxes: '0' is too small", "at least 1"},
  };
  for (const auto& bad : cases) {
    SCOPED_TRACE(std::string(bad.pattern) + " " + bad.says);
    std::ostringstream out;
    const auto error = rvma::generate(bad.pattern, bad.arguments, out);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->position.source, "rvma");
    EXPECT_THAT(error->what, HasSubstr(bad.says));
    EXPECT_THAT(error->expected, HasSubstr(bad.hint));
    EXPECT_TRUE(out.str().empty());
  }
}

}  // namespace
}  // namespace rvma
