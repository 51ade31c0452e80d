// Imports: what each format's text becomes, and where its mistakes stand.
#include "workload/import.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "workload/trace.hpp"

namespace rvma {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

struct Imported {
  std::string trace;
  std::string errors;
  std::string warnings;
};

Imported import_all(const std::string& name, const std::vector<std::string>& texts, const ImportOptions& options = {}) {
  const ImportFormat* const format = find_import_format(name);
  EXPECT_NE(format, nullptr) << name;
  std::vector<ImportSource> sources;
  for (const std::string& text : texts) {
    const std::string source = sources.empty() ? "f" : "g";
    auto opened = trace_detail::text_in_memory(text, source, {"test", "a test", format->is_binary});
    EXPECT_TRUE(opened.has_value()) << text;
    sources.push_back({source, std::move(*opened)});
  }
  ImportLog log(options.lenient);
  std::ostringstream trace;
  import_workload(*format, sources, options, trace, log);
  std::ostringstream errors;
  log.errors().print(errors);
  std::ostringstream warnings;
  log.print_warnings(warnings);
  EXPECT_EQ(trace.str().empty(), !log.errors().empty()) << "a trace or errors, never both";
  if (log.errors().empty()) {
    ErrorList mistakes;
    Trace::from_text(trace.str(), "t", mistakes);
    std::ostringstream said;
    mistakes.print(said);
    EXPECT_TRUE(mistakes.empty()) << said.str() << trace.str();
  }
  return {trace.str(), errors.str(), warnings.str()};
}

Imported import(const std::string& name, const std::string& text, const ImportOptions& options = {}) {
  return import_all(name, {text}, options);
}

/// The lines of a rank.
std::string program(const std::string& trace, int rank) {
  const std::string head = "rank " + std::to_string(rank) + "\n";
  const std::size_t begin = trace.find(head);
  if (begin == std::string::npos) return "";
  const std::size_t end = trace.find("\nrank ", begin);
  return trace.substr(begin, end == std::string::npos ? end : end + 1 - begin);
}

// ---------------------------------------------------------------------------------------------------------------- GOAL

TEST(ImportGoal, AMessageIsAPutToTheMailboxOfItsSourceAndTag) {
  const Imported got = import("goal",
                              "num_ranks 2\nrank 0 {\nl1: send 10b to 1 tag 5\n}\n"
                              "rank 1 {\nl1: recv 10b from 0 tag 5\nl2: calc 100\nl2 requires l1\n}\n");
  EXPECT_EQ(got.errors, "");
  EXPECT_EQ(program(got.trace, 0),
            "rank 0\n  barrier\n  mark begin\n  put rank=1 mailbox=0x5 size=10\n  wait all\n  mark end\n");
  EXPECT_EQ(program(got.trace, 1),
            "rank 1\n  init_window w0 mailbox=0x5 threshold=1op\n  post_buffer w0 as=b0_0 size=10\n  barrier\n"
            "  mark begin\n  wait b0_0\n  compute 100000ps\n  wait all\n  mark end\n");
}

TEST(ImportGoal, SizesAndTimesAreExact) {
  const Imported got = import("goal",
                              "num_ranks 2\nrank 0 {\nsend 8589934593b to 1\ncalc 123456789012\n}\n"
                              "rank 1 {\nrecv 8589934593b from 0\n}\n");
  EXPECT_THAT(got.trace, HasSubstr("size=8589934593"));
  EXPECT_THAT(got.trace, HasSubstr("compute 123456789012000ps"));
}

TEST(ImportGoal, WhatIsRequiredIsWaitedForAndWhatOnlyHasToStartIsNot) {
  const std::string receiver = "rank 1 {\nrecv 1b from 0\n}\n";
  const auto sender = [&](const std::string& requires_word) {
    return program(
        import("goal", "num_ranks 2\nrank 0 {\na: send 1b to 1\nb: calc 5\nb " + requires_word + " a\n}\n" + receiver)
            .trace,
        0);
  };
  EXPECT_THAT(sender("requires"), HasSubstr("as=p0\n  wait p0\n  compute 5000ps\n"));
  EXPECT_THAT(sender("irequires"), HasSubstr("size=1\n  compute 5000ps\n"));
}

TEST(ImportGoal, AReceiveThatNothingRequiresHoldsNothingUp) {
  const Imported got = import("goal",
                              "num_ranks 2\nrank 0 {\nrecv 1b from 1\nsend 1b to 1\n}\n"
                              "rank 1 {\nr: recv 1b from 0\ns: send 1b to 0\ns requires r\n}\n");
  EXPECT_THAT(program(got.trace, 0), HasSubstr("put rank=1 mailbox=0x0 size=1\n  wait b0_0\n"));
  EXPECT_THAT(program(got.trace, 1), HasSubstr("wait b1_0\n  put rank=0"));
}

TEST(ImportGoal, AChainOfReceivesIsWaitedForWhole) {
  const Imported got = import("goal",
                              "num_ranks 2\nrank 0 {\nsend 1b to 1 tag 1\nsend 1b to 1 tag 2\n}\n"
                              "rank 1 {\na: recv 1b from 0 tag 1\nb: recv 1b from 0 tag 2\nc: calc 1\n"
                              "b requires a\nc requires b\n}\n");
  EXPECT_THAT(program(got.trace, 1), HasSubstr("wait b0_0 b1_0\n  compute"));
}

TEST(ImportGoal, TheOrderOfIndependentReceivesNeverDeadlocks) {
  // In the order of the text rank 0 would wait for rank 1, which waits for what rank 0 sends only after rank 2's
  // message.
  const Imported got =
      import("goal",
             "num_ranks 3\nrank 0 {\na: recv 1b from 1\nx: calc 1\nx requires a\n"
             "b: recv 1b from 2\nc: send 1b to 1\nc requires b\n}\n"
             "rank 1 {\na: recv 1b from 0\nb: send 1b to 0\nb requires a\n}\nrank 2 {\nsend 1b to 0\n}\n");
  EXPECT_EQ(got.errors, "");
  EXPECT_THAT(program(got.trace, 0), HasSubstr("wait b1_0\n  put rank=1 mailbox=0x0 size=1\n  wait b0_0\n  compute"));
}

TEST(ImportGoal, AReceiveFromAnyoneSharesOneMailbox) {
  const Imported got = import("goal",
                              "num_ranks 3\nrank 0 {\nrecv 8b from -1 tag 3\nrecv 8b from -1 tag 3\n}\n"
                              "rank 1 {\nsend 8b to 0 tag 3\n}\nrank 2 {\nsend 4b to 0 tag 3\n}\n");
  EXPECT_EQ(got.errors, "");
  EXPECT_THAT(program(got.trace, 0), HasSubstr("init_window w0 mailbox=0x100000003 threshold=1op\n"
                                               "  post_buffer w0 as=b0_0 size=8\n  post_buffer w0 as=b0_1 size=8\n"));
  EXPECT_THAT(program(got.trace, 2), HasSubstr("mailbox=0x100000003 size=4"));
}

TEST(ImportGoal, CommentsAndBlanks) {
  const Imported got =
      import("goal", "/* two\n lines */ num_ranks 1 // end\n\nrank 0 { // more\n\tl: calc 7 /* here */ cpu 0\r\n}\n");
  EXPECT_EQ(got.errors, "");
  EXPECT_THAT(got.trace, HasSubstr("compute 7000ps"));
}

struct Mistake {
  std::string text;
  std::string error;  ///< its begin
};

class ImportGoalMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(ImportGoalMistakes, StandAtTheirPlace) {
  const Imported got = import("goal", GetParam().text);
  EXPECT_EQ(got.errors.substr(0, GetParam().error.size()), GetParam().error) << got.errors;
}

INSTANTIATE_TEST_SUITE_P(
    All, ImportGoalMistakes,
    testing::Values(
        Mistake{"rank 0 {\n}\n", "f:1:1: error: 'rank' before 'num_ranks N'"},
        Mistake{"num_ranks 0\n", "f:1:11: error: 'num_ranks 0'"}, Mistake{"num_ranks 2000000\n", "f:1:11: error: "},
        Mistake{"num_ranks 1\nrank 1 {\n}\n", "f:2:6: error: rank 1 is out of range"},
        Mistake{"num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n", "f:4:6: error: a second block of rank 0"},
        Mistake{"num_ranks 2\nrank 0 {\n}\n", "f:1:1: error: the file has blocks of 1 ranks, but 'num_ranks 2'"},
        Mistake{"num_ranks 1\nrank 0 {\nl1: calc 1\n", "f:2:1: error: the file ends within the block of rank 0"},
        Mistake{"num_ranks 1\nrank 0 {\n} /* x", "f:3:3: error: the file ends within this comment"},
        Mistake{"num_ranks 1\nrank 0 {\nl1: calc\n}\n", "f:3:9: error: the line ends here"},
        Mistake{"num_ranks 1\nrank 0 {\nl1: calc -5\n}\n", "f:3:10: error: '-5' is no time in ns"},
        Mistake{"num_ranks 1\nrank 0 {\nl1: calc 99999999999999999999\n}\n", "f:3:10: error: "},
        Mistake{"num_ranks 1\nrank 0 {\nl1: cacl 5\n}\n", "f:3:5: error: unexpected 'cacl'"},
        Mistake{"num_ranks 1\nrank 0 {\nl1: calc 5 5\n}\n", "f:3:12: error: unexpected '5'"},
        Mistake{"num_ranks 1\nrank 0 {\nl1: send 5 to 0\n}\n", "f:3:12: error: unexpected 'to'; expected 'b'"},
        Mistake{"num_ranks 1\nrank 0 {\nl1: send 5b from 0\n}\n", "f:3:13: error: unexpected 'from'; expected 'to'"},
        Mistake{"num_ranks 1\nrank 0 {\nsend 5b to -1\n}\n", "f:3:12: error: '-1' is no rank"},
        Mistake{"num_ranks 1\nrank 0 {\nsend 5b to 7\n}\n", "f:3:1: error: rank 7 is out of range"},
        Mistake{"num_ranks 1\nrank 0 {\nsend 5b to 0\n}\n", "f:3:1: error: nobody receives this message"},
        Mistake{"num_ranks 1\nrank 0 {\nrecv 5b from 0\n}\n", "f:3:1: error: nobody sends"},
        Mistake{"num_ranks 1\nrank 0 {\nrecv 5b from -1 tag -1\n}\n", "f:3:1: error: no rank sends"},
        Mistake{"num_ranks 1\nrank 0 {\nsend 99999999999b to 0\nrecv 99999999999b from 0\n}\n",
                "f:3:1: error: a message of 99999999999 bytes is too large"},
        Mistake{"num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\n}\n", "f:4:1: error: a second label 'a'"},
        Mistake{"num_ranks 1\nrank 0 {\nwork: calc 1\nwork requires wrok\n}\n",
                "f:4:15: error: rank 0 has no label 'wrok'; did you mean 'work'?"},
        Mistake{"num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n",
                "f:5:1: error: 2 operations wait for one another (lines "},
        Mistake{"num_ranks 1\nrank 0 {\na: calc 1\na requires a\n}\n",
                "f:4:1: error: 1 operation waits for itself (line 3)"},
        Mistake{"num_ranks 2\nrank 0 {\nr: recv 1b from 1\ns: send 1b to 1\ns requires r\n}\n"
                "rank 1 {\nr: recv 1b from 0\ns: send 1b to 0\ns requires r\n}\n",
                "f:5:1: error: 4 operations wait for one another"}));

TEST(ImportGoal, AMessageLongerThanItsReceiveIsAMistake) {
  const Imported got = import("goal", "num_ranks 2\nrank 0 {\nsend 9b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n");
  EXPECT_THAT(got.errors, HasSubstr("f:3:1: error: a message of 9 bytes for a receive of 8"));
}

TEST(ImportGoal, LenientTakesMissingRanksForIdle) {
  ImportOptions options;
  options.lenient = true;
  const Imported got = import("goal", "num_ranks 2\nrank 1 {\ncalc 1\n}\n", options);
  EXPECT_EQ(got.errors, "");
  EXPECT_THAT(got.warnings, HasSubstr("f:1:1: warning: the file has blocks of 1 ranks"));
}

TEST(ImportGoal, TheFirstTwentyMistakesAreShown) {
  std::string text = "num_ranks 1\nrank 0 {\n";
  for (int i = 0; i < 25; ++i) text += "?\n";
  const Imported got = import("goal", text + "}\n");
  EXPECT_THAT(got.errors, HasSubstr("f:22:1: error"));
  EXPECT_THAT(got.errors, Not(HasSubstr("f:23:1")));
  EXPECT_THAT(got.errors, HasSubstr("... and 5 more errors"));
}

// --------------------------------------------------------------------------------------------------------------- htsim

TEST(ImportHtsim, FlowsStartAtTheirTimesTheFirstAtZero) {
  const std::string text = "Nodes 2\nConnections 2\n0->1 id 1 start 5000 size 10\n0->1 id 2 start 7500 size 20\n";
  const Imported got = import("htsim", text);
  EXPECT_EQ(got.errors, "");
  EXPECT_THAT(program(got.trace, 0),
              HasSubstr("mark begin\n  put rank=1 mailbox=0x0 size=10\n  compute 2500ps\n  put"));
  ImportOptions kept;
  kept.keep_start = true;
  kept.start_unit = "us";
  EXPECT_THAT(program(import("htsim", text, kept).trace, 0), HasSubstr("mark begin\n  compute 5000000000ps\n  put"));
}

TEST(ImportHtsim, ATriggerStartsAConnectionAlsoAtAnotherRank) {
  const Imported got = import("htsim",
                              "Nodes 3\nConnections 3\nTriggers 2\n0->1 id 1 start 0 size 10 recv_done_trigger 1\n"
                              "1->2 id 2 trigger 1 size 10 send_done_trigger 2\n0->2 id 3 trigger 2 size 10\n"
                              "trigger id 1 oneshot\ntrigger id 2 oneshot\n");
  EXPECT_EQ(got.errors, "");
  EXPECT_THAT(program(got.trace, 1), HasSubstr("wait b1_0\n  put rank=2 mailbox=0x100000000 size=10 as=p2\n  wait p2\n"
                                               "  put rank=0 mailbox=0x100000001 size=1\n"));
  EXPECT_THAT(program(got.trace, 0), HasSubstr("wait b0_0\n  put rank=2 mailbox=0x0 size=10\n"));
}

class ImportHtsimMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(ImportHtsimMistakes, StandAtTheirPlace) {
  const Imported got = import("htsim", GetParam().text);
  EXPECT_EQ(got.errors.substr(0, GetParam().error.size()), GetParam().error) << got.errors;
}

INSTANTIATE_TEST_SUITE_P(
    All, ImportHtsimMistakes,
    testing::Values(
        Mistake{"Connections 0\n", "f:1:1: error: the file has no 'Nodes N'"},
        Mistake{"Nodes 2\nConnections 2\n0->1 start 0 size 1\n",
                "f:2:1: error: the header promises 2 connections, the file has 1"},
        Mistake{"Nodes 2\nConnections 1\n0->2 start 0 size 1\n", "f:3:4: error: node 2 is out of range"},
        Mistake{"Nodes 2\nConnections 1\n0->1 id 1 trigger 1 size 1\ntrigger id 1 oneshot\n",
                "f:4:1: error: no header says how many triggers there are"},
        Mistake{"Nodes 2\nConnections 1\n0->1 start 0\n", "f:3:13: error: the connection has no size"},
        Mistake{"Nodes 2\nConnections 1\n0->1 start 0 size\n", "f:3:18: error: the line ends behind 'size'"},
        Mistake{"Nodes 2\nConnections 1\n0->1 start 0 size 0\n", "f:3:19: error: 'size 0'"},
        Mistake{"Nodes 2\nConnections 1\n0->1 start 0.5 size 1\n", "f:3:12: error: '0.5' is no start time in ps"},
        Mistake{"Nodes 2\nConnections 1\n0->1 size 1\n", "f:3:1: error: the connection never starts"},
        Mistake{"Nodes 2\nConnections 1\n0->1 strat 0 size 1\n",
                "f:3:6: error: unknown word 'strat'; did you mean 'start'?"},
        Mistake{"Nodes 2\nConnections 2\n0->1 id 1 start 0 size 1\n0->1 id 1 start 0 size 1\n",
                "f:4:9: error: a second connection of id 1"},
        Mistake{"Nodes 2\nConnections 1\n0->1 trigger 4 size 1\n", "f:3:1: error: there is no trigger 4"},
        Mistake{"Nodes 2\nConnections 1\nTriggers 1\n0->1 trigger 4 size 1\ntrigger id 4 oneshot\n",
                "f:5:1: error: nothing fires trigger 4"},
        Mistake{"Nodes 2\nConnections 1\nTriggers 1\n0->1 id 1 trigger 4 size 1 recv_done_trigger 4\n"
                "trigger id 4 barrier count 2\n",
                "f:5:1: error: trigger 4 waits for 2 connections, 1 name it"},
        Mistake{"Nodes 2\nConnections 1\nTriggers 1\n0->1 id 1 trigger 4 size 1 send_done_trigger 4\ntrigger id 4 "
                "oneshot\n",
                "f:4:1: error: 1 operation waits for itself (line 4)"}));

// ---------------------------------------------------------------------------------------------------------------- HPCC

TEST(ImportHpcc, FlowsAreExactToThePicosecond) {
  const Imported got = import("hpcc", "2\n0 1 3 100 5000000000 2.000000001\n0 1 3 100 7 2.000000001003\n");
  EXPECT_EQ(got.errors, "");
  EXPECT_THAT(program(got.trace, 0),
              HasSubstr("put rank=1 mailbox=0x30064 size=5000000000\n  compute 3ps\n  put rank=1"));
  EXPECT_THAT(got.trace, HasSubstr("# the first flow started at 2000000001000ps"));
}

TEST(ImportHpcc, TheHostsOfATopologyAreTheRanks) {
  const Imported got = import_all("hpcc", {"1\n1 2 3 100 10 0\n", "3 1 2\n0\n1 0 100Gbps 1us 0\n2 0 100Gbps 1us 0\n"});
  EXPECT_EQ(got.errors, "");
  EXPECT_THAT(got.trace, HasSubstr("ranks 2\nrank 0\n"));
  EXPECT_THAT(program(got.trace, 0), HasSubstr("put rank=1"));
}

std::string topology(const std::string& text, std::string* links = nullptr, std::string* said = nullptr) {
  auto source = trace_detail::text_in_memory(text, "f", {"topology", "a header"});
  ImportLog log;
  std::ostringstream links_out;
  std::ostringstream config;
  import_topology({"f", std::move(*source)}, "net.links", links_out, config, log);
  std::ostringstream out;
  log.errors().print(out);
  log.print_warnings(out);
  if (links != nullptr) *links = links_out.str();
  if (said != nullptr) *said = out.str();
  return config.str();
}

TEST(ImportHpcc, ATopologyIsALinkListAndItsConfiguration) {
  std::string links;
  const std::string config =
      topology("5 2 4\n3 4\n0 3 100Gbps 0.001ms 0\n1 3 100Gb/s 1us 0\n2 4 100Gbps 1us 0\n3 4 400Gbps 1us 0\n", &links);
  EXPECT_THAT(links, HasSubstr("link 0 switch0\nlink 1 switch0\nlink 2 switch1\nlink switch0 switch1 4\n"));
  EXPECT_THAT(config, HasSubstr(R"("file": {"path": "net.links"})"));
  EXPECT_THAT(config, HasSubstr(R"("link": {"rate": "100Gbps", "latency": "1us"})"));
}

TEST(ImportHpcc, WhatATopologyLosesIsSaid) {
  std::string said;
  topology("3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 25Gbps 2us 0.1\n", nullptr, &said);
  EXPECT_THAT(said, HasSubstr("f:3:1: warning: a rate of 100Gbps: this link has 25Gbps"));
  EXPECT_THAT(said, HasSubstr("f:3:1: warning: a delay of 1us: all links have 2us"));
  EXPECT_THAT(said, HasSubstr("f:3:1: warning: an error rate of 0"));
}

class ImportHpccMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(ImportHpccMistakes, StandAtTheirPlace) {
  const Imported got = import("hpcc", GetParam().text);
  EXPECT_EQ(got.errors.substr(0, GetParam().error.size()), GetParam().error) << got.errors;
}

INSTANTIATE_TEST_SUITE_P(All, ImportHpccMistakes,
                         testing::Values(Mistake{"0\n", "f:1:1: error: a file without flows"},
                                         Mistake{"1 2\n", "f:1:3: error: the header has 2 words"},
                                         Mistake{"2\n0 1 3 100 10 0\n",
                                                 "f:1:1: error: the header promises 2 flows, the file has 1"},
                                         Mistake{"1\n0 1 3 100 10 0\n\nFirst line: flows\n",
                                                 "f:4:1: error: the header promises 1 flows, this is more"},
                                         Mistake{"1\n0 1 3 100 10\n", "f:2:13: error: a flow has 5 words"},
                                         Mistake{"1\n0 1 3 100 10 1e3\n", "f:2:14: error: '1e3' is no start time in s"},
                                         Mistake{"1\n0 1 3 100 0x10 0\n", "f:2:11: error: '0x10' is no size in bytes"},
                                         Mistake{"1\n0 1 3 70000 10 0\n", "f:2:7: error: "}));

TEST(ImportHpcc, MistakesOfATopology) {
  const auto said = [](const std::string& text) {
    std::string out;
    topology(text, nullptr, &out);
    return out;
  };
  EXPECT_THAT(said("3 1\n"), HasSubstr("f:1:4: error: the header has 2 words"));
  EXPECT_THAT(said("3 3 2\n"), HasSubstr("f:1:3: error: 3 switches of 3 nodes"));
  EXPECT_THAT(said("3 1 2\n7\n"), HasSubstr("f:2:1: error: node 7 is out of range"));
  EXPECT_THAT(said("3 1 1\n0\n1 2 1Gbps 1us 0\n"), HasSubstr("f:3:1: error: a link between two hosts"));
  EXPECT_THAT(said("3 1 2\n0\n1 0 1Gbps 1us 0\n1 0 1Gbps 1us 0\n"), HasSubstr("f:4:1: error: a second link of host 1"));
  EXPECT_THAT(said("3 1 2\n0\n1 0 fast 1us 0\n"), HasSubstr("f:3:5: error: "));
  EXPECT_THAT(said("3 1 2\n0\n1 0 1Gbps 1us 0\n"),
              HasSubstr("f:1:5: error: the header promises 2 links, the file has 1"));
  EXPECT_THAT(said("3 1 2\n"), HasSubstr("f:1:3: error: the header promises 1 switch, the file has 0"));
  EXPECT_THAT(said("3 1 1\n0\n1 0 1Gbps 1us 0\n"), HasSubstr("f:1:1: error: no links lead from node 0 to node 2"));
  EXPECT_THAT(said("4 2 2\n0 1\n2 0 1Gbps 1us 0\n3 1 1Gbps 1us 0\n"),
              HasSubstr("f:1:1: error: no links lead from node 0 to node 1"));
}

// -------------------------------------------------------------------------------------------------------------- Chakra

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7U) bytes += static_cast<char>(0x80U | (value & 0x7fU));
  return bytes + static_cast<char>(value);
}
std::string delimited(const std::string& bytes) { return varint(bytes.size()) + bytes; }
std::string number(int field, std::uint64_t value) {
  return varint(static_cast<unsigned>(field) << 3U) + varint(value);
}
std::string block(int field, const std::string& bytes) {
  return varint(static_cast<unsigned>(field) << 3U | 2U) + delimited(bytes);
}
std::string attribute(const std::string& name, std::uint64_t value) {
  constexpr int kUint64 = 13;
  return block(10, block(1, name) + number(kUint64, value));
}
std::string message_node(std::uint64_t id, int type, const std::string& peer_name, std::uint64_t peer,
                         std::uint64_t size) {
  return delimited(number(1, id) + number(3, static_cast<std::uint64_t>(type)) + attribute("comm_size", size) +
                   attribute(peer_name, peer) + attribute("comm_tag", 9));
}
const std::string kMetadata = delimited(block(1, "0.0.4"));
constexpr int kCompute = 4;
constexpr int kSend = 5;
constexpr int kReceive = 6;
constexpr int kCollective = 7;

bool has_chakra() { return find_import_format("chakra")->missing.empty(); }

TEST(ImportChakra, NodesAreComputingAndMessages) {
  if (!has_chakra()) GTEST_SKIP() << find_import_format("chakra")->missing;
  const std::string compute = delimited(number(1, 1) + number(3, kCompute) + number(7, 12) + block(5, varint(0)));
  const Imported got =
      import_all("chakra", {kMetadata + message_node(0, kSend, "comm_dst", 1, 5000000000),
                            kMetadata + message_node(0, kReceive, "comm_src", 0, 5000000000) + compute});
  EXPECT_EQ(got.errors, "");
  EXPECT_THAT(program(got.trace, 0), HasSubstr("put rank=1 mailbox=0x9 size=5000000000"));
  EXPECT_THAT(program(got.trace, 1), HasSubstr("wait b0_0\n  compute 12000000ps"));
}

TEST(ImportChakra, MistakesStandAtTheirMessage) {
  if (!has_chakra()) GTEST_SKIP() << find_import_format("chakra")->missing;
  const auto said = [](const std::string& nodes) { return import_all("chakra", {kMetadata + nodes}).errors; };
  const std::string send = message_node(0, kSend, "comm_dst", 0, 8);
  EXPECT_THAT(said(send), HasSubstr("f:2:1: error: nobody receives"));
  EXPECT_THAT(said(send.substr(0, 20)), HasSubstr("f:2:1: error: the file ends within this message"));
  EXPECT_THAT(import_all("chakra", {send}).errors,
              HasSubstr("f:1:1: error: the file begins with a node; expected a Global"));
  EXPECT_THAT(said(delimited(number(1, 3) + number(3, 99))), HasSubstr("f:2:1: error: a node of type 99"));
  EXPECT_THAT(said("\x80"), HasSubstr("f:2:1: error: the file ends within a message's length"));
  EXPECT_THAT(said(delimited(number(1, 3) + "\x07")), HasSubstr("f:2:3: error: malformed protobuf"));
  EXPECT_THAT(said(delimited(number(1, 3) + number(3, kSend))),
              HasSubstr("f:2:1: error: the node has no attribute comm_size"));
  const std::string compute = delimited(number(1, 3) + number(3, kCompute) + number(4, 8));
  EXPECT_THAT(said(compute), HasSubstr("f:2:1: error: the node requires node 8, which is not there"));
  EXPECT_THAT(said(delimited(number(3, kCompute)) + delimited(number(3, kCompute))),
              HasSubstr("f:3:1: error: a second node of id 0"));
}

std::string text_attribute(const std::string& name, const std::string& text) {
  constexpr int kString = 29;
  return block(10, block(1, name) + block(kString, text));
}
enum Collective : std::uint8_t { kAllReduce = 0, kBroadcast = 5, kBarrier = 9 };
std::string collective_node(std::uint64_t id, std::uint64_t type, std::uint64_t size, const std::string& more = "") {
  return delimited(number(1, id) + number(3, kCollective) + attribute("comm_type", type) +
                   attribute("comm_size", size) + more);
}

TEST(ImportChakra, ACollectiveIsItsMessages) {
  if (!has_chakra()) GTEST_SKIP() << find_import_format("chakra")->missing;
  const std::string compute = delimited(number(1, 1) + number(3, kCompute) + number(7, 12) + number(5, 0));
  const std::string nodes = kMetadata + collective_node(0, kAllReduce, 7) + compute;
  const Imported got = import_all("chakra", {nodes, nodes});
  EXPECT_EQ(got.errors, "");
  // 4 B and 3 B, once to be added up and once more to be known; computing follows.
  EXPECT_THAT(program(got.trace, 0), HasSubstr("init_window w0 mailbox=0x180000000 threshold=1op\n"
                                               "  post_buffer w0 as=b0_0 size=4\n  post_buffer w0 as=b0_1 size=4\n"));
  EXPECT_THAT(
      program(got.trace, 0),
      ContainsRegex("put rank=1 mailbox=0x80000000 size=4 as=p[0-9]+\n  wait b0_0\n"
                    "  put rank=1 mailbox=0x80000000 size=3 as=p[0-9]+\n  wait b0_1 [^\n]*\n  compute 12000000ps\n"));
}

TEST(ImportChakra, ACollectiveOfAGroupIsAmongItsRanks) {
  if (!has_chakra()) GTEST_SKIP() << find_import_format("chakra")->missing;
  const std::string one = text_attribute("pg_name", "one");
  const std::string root = attribute("root_rank", 2);
  const Imported got =
      import_all("chakra", {kMetadata + collective_node(0, kBroadcast, 9, one + root),
                            kMetadata + collective_node(0, kBarrier, 0, text_attribute("pg_name", "other")),
                            kMetadata + collective_node(0, kBroadcast, 9, root + one)});
  EXPECT_EQ(got.errors, "");
  EXPECT_THAT(program(got.trace, 2), HasSubstr("put rank=0 mailbox=0x280000000 size=9"));
  EXPECT_THAT(program(got.trace, 1), Not(HasSubstr("put")));
  EXPECT_THAT(got.warnings, HasSubstr("g:2:1: warning: group 'other' has one rank only: its collectives send nothing"));
}

TEST(ImportChakra, CollectivesOfAGroupFollowOneAnother) {
  if (!has_chakra()) GTEST_SKIP() << find_import_format("chakra")->missing;
  const auto both = [](const std::string& nodes) {
    return import_all("chakra", {kMetadata + nodes, kMetadata + nodes});
  };
  EXPECT_EQ(both(collective_node(4, kBarrier, 0) + collective_node(2, kAllReduce, 9)).errors, "");
  // The second one in the file before the first.
  const std::string circle = collective_node(4, kBarrier, 0, number(4, 2)) + collective_node(2, kAllReduce, 9);
  EXPECT_THAT(both(circle).errors, HasSubstr("operations wait for one another"));
}

TEST(ImportChakra, CollectivesThatDoNotMatch) {
  if (!has_chakra()) GTEST_SKIP() << find_import_format("chakra")->missing;
  const auto said = [](const std::string& mine, const std::string& others) {
    return import_all("chakra", {kMetadata + mine, kMetadata + others}).errors;
  };
  const std::string reduce = collective_node(0, kAllReduce, 8);
  EXPECT_THAT(said(reduce, collective_node(0, kAllReduce, 9)),
              HasSubstr("g:2:1: error: number 1 of the collectives of all ranks is all-reduce of 9 bytes here, and "
                        "all-reduce of 8 bytes on rank 0"));
  EXPECT_THAT(said(reduce, collective_node(0, kBarrier, 8)), HasSubstr("g:2:1: error: number 1 of the collectives"));
  EXPECT_THAT(said(reduce, ""), HasSubstr("f:2:1: error: rank 1 has no collective of all ranks"));
  EXPECT_THAT(said("", reduce), HasSubstr("g:2:1: error: rank 0 has no collective of all ranks"));
  EXPECT_THAT(said(reduce + collective_node(1, kAllReduce, 8), reduce),
              HasSubstr("f:3:1: error: this is number 2 of the collectives of all ranks, and rank 1 has 1;"));
  const std::string to_nobody = collective_node(0, kBroadcast, 8, attribute("root_rank", 7));
  EXPECT_THAT(said(to_nobody, to_nobody), HasSubstr("f:2:1: error: rank 7, the root, takes no part"));
  EXPECT_THAT(said(delimited(number(3, kCollective) + attribute("comm_size", 1)), ""),
              HasSubstr("f:2:1: error: the node has no attribute comm_type"));
  EXPECT_THAT(said(delimited(number(3, kCollective) + attribute("comm_type", 1)), ""),
              HasSubstr("f:2:1: error: the node has no attribute comm_size"));
  EXPECT_THAT(said(collective_node(0, 10, 1), ""), HasSubstr("f:2:1: error: comm_type 10 is no collective"));
  const auto dimensions = [](const std::string& values) {
    return block(10, block(1, "involved_dim") + block(28, values));
  };
  const std::string some = collective_node(0, kAllReduce, 1, dimensions(block(1, std::string("\1\0", 2))));
  EXPECT_THAT(said(some, some), HasSubstr("f:2:1: error: the collective is over some dimensions"));
  const std::string every = collective_node(0, kAllReduce, 1, dimensions(number(1, 1) + number(1, 1)));
  EXPECT_EQ(said(every, every), "");
}

TEST(ImportChakra, MoreMessagesThanCanBeKept) {
  if (!has_chakra()) GTEST_SKIP() << find_import_format("chakra")->missing;
  std::string nodes = kMetadata;
  for (std::uint64_t id = 0; id < 4; ++id) nodes += collective_node(id, 6, 8);
  // 3,000 ranks: 9 million messages an all-to-all.
  EXPECT_THAT(import_all("chakra", std::vector<std::string>(3000, nodes)).errors,
              HasSubstr("error: collectives up to this one have 35988000 messages; expected at most 33554432"));
}

}  // namespace
}  // namespace rvma
