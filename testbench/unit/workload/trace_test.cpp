// The trace reader: grammar, positions of mistakes, names in loops, last uses, packed files; random programs against a
// naive unrolling.
#include "workload/trace.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/value_text.hpp"
#include "nic/descriptor.hpp"
#include "workload/trace_checker.hpp"
#include "workload/trace_cursor.hpp"
#include "workload/trace_text.hpp"

namespace rvma {
namespace {

using testing::HasSubstr;

std::string header(std::uint32_t ranks) { return "rvma-trace 1\nranks " + std::to_string(ranks) + "\n"; }

std::unique_ptr<Trace> read(const std::string& text) {
  ErrorList errors;
  auto trace = Trace::from_text(text, "t", errors);
  std::ostringstream out;
  errors.print(out);
  EXPECT_NE(trace, nullptr) << out.str() << text;
  return trace;
}

/// Names, operands (`!`: used here for the last time) and, of puts, the seed.
std::string summary(const Trace& trace, RankId rank, const Operation& op) {
  std::string text = ValueText<OperationKind>::print(op.kind);
  if (op.has_name) text += " " + trace.spelling(rank, op.name) + (op.name_never_used ? "~" : "");
  for (std::size_t i = 0; i < op.operands.size(); ++i)
    text += " <" + trace.spelling(rank, op.operands[i]) + (op.last_use.at(i) ? "!" : "") + ">";
  if (op.kind == OperationKind::put) text += " seed=" + std::to_string(op.seed);
  return text;
}

std::vector<std::string> play(const Trace& trace, std::uint32_t rank, std::size_t at_most = 10000) {
  std::vector<std::string> all;
  const auto cursor = trace.cursor(RankId{rank});
  for (const Operation* op = cursor->next(); op != nullptr && all.size() < at_most; op = cursor->next())
    all.push_back(summary(trace, RankId{rank}, *op));
  if (all.size() < at_most) {
    EXPECT_EQ(cursor->next(), nullptr) << "the end stays the end";
  }
  return all;
}

// ---------------------------------------------------------------------------------------------------------------- good

TEST(Trace, ReadsTheSpecExample) {
  const auto trace = read(
      "rvma-trace 1\nranks 2\nrank 1\n  init_window w mailbox=0xbeef000000000000 threshold=4KiB\n"
      "  post_buffer w as=b0 size=4KiB\n  barrier\n  wait b0\nrank 0\n  barrier\n"
      "  put as=p0 rank=1 mailbox=0xbeef000000000000 size=4KiB\n  wait p0\n");
  ASSERT_NE(trace, nullptr);
  EXPECT_EQ(trace->ranks(), 2U);
  EXPECT_EQ(trace->total_operations(), 7U);
  EXPECT_EQ(trace->total_puts(), 1U);
  EXPECT_THAT(play(*trace, 1), testing::ElementsAre("init_window w", "post_buffer b0 <w!>", "barrier", "wait <b0!>"));
  EXPECT_THAT(play(*trace, 0), testing::ElementsAre("barrier", "put p0 seed=0", "wait <p0!>"));
  EXPECT_TRUE(trace->warnings().empty());
}

TEST(Trace, FillsInEveryArgumentAndDefault) {
  const auto trace = read(header(3) +
                          "rank 2\n"
                          "init_window w interrupt threshold=5op key=0xffffffff readable mailbox=18446744073709551615 "
                          "catch_all placement=managed\n"
                          "init_window v mailbox=0x10 threshold=1MiB\n"
                          "post_buffer w seed=0xffffffffffffffff size=3GiB align=4KiB as=b\n"
                          "post_buffer v size=1\n"
                          "post_one_time_buffer mailbox=7 size=1kB as=o\n"
                          "post_one_time_buffer mailbox=8 size=1kB threshold=2op key=3\n"
                          "put rank=1 mailbox=0x20 size=0 offset=0xffffffffffffffff key=9 as=p seed=5\n"
                          "get rank=2 mailbox=0x30 size=4096 offset=8 key=1 as=g\n"
                          "wait how=poll b o p g\n"
                          "wait all how=interrupt\n"
                          "inc_epoch w\nget_epoch w\nget_buf_ptrs w n=4\nrewind w n=0\nclose_window w\n"
                          "compute 1.5us\nbarrier\nmark begin\nmark end\n");
  ASSERT_NE(trace, nullptr);
  const auto cursor = trace->cursor(RankId{2});
  const Operation* op = cursor->next();
  EXPECT_EQ(op->mailbox.value(), 18446744073709551615ULL);
  EXPECT_EQ(op->threshold, 5U);
  EXPECT_EQ(op->threshold_type, ThresholdType::ops);
  EXPECT_EQ(op->placement, Placement::managed);
  EXPECT_EQ(op->key, 0xffffffffU);
  EXPECT_EQ(op->window_flags, kWindowReadable | kWindowCatchAll | kWindowInterrupt);
  op = cursor->next();
  EXPECT_EQ(op->threshold, 1024U * 1024U);
  EXPECT_EQ(op->threshold_type, ThresholdType::bytes);
  EXPECT_EQ(op->placement, Placement::steered);
  EXPECT_EQ(op->key, 0U);
  EXPECT_EQ(op->window_flags, 0U);
  op = cursor->next();
  EXPECT_EQ(op->size, 3ULL << 30U);
  EXPECT_EQ(op->align, 4096U);
  EXPECT_TRUE(op->has_seed);
  EXPECT_EQ(op->seed, 0xffffffffffffffffULL);
  op = cursor->next();
  EXPECT_EQ(op->align, 64U);
  EXPECT_FALSE(op->has_seed);
  EXPECT_FALSE(op->has_name);
  op = cursor->next();
  EXPECT_EQ(op->kind, OperationKind::post_one_time_buffer);
  EXPECT_EQ(op->size, 1000U);
  EXPECT_EQ(op->threshold, 1000U);
  op = cursor->next();
  EXPECT_EQ(op->threshold, 2U);
  EXPECT_EQ(op->threshold_type, ThresholdType::ops);
  EXPECT_EQ(op->key, 3U);
  op = cursor->next();
  EXPECT_EQ(op->rank.value(), 1U);
  EXPECT_EQ(op->size, 0U);
  EXPECT_EQ(op->offset, 0xffffffffffffffffULL);
  EXPECT_EQ(op->seed, 5U);
  op = cursor->next();
  EXPECT_EQ(op->kind, OperationKind::get);
  EXPECT_EQ(op->offset, 8U);
  op = cursor->next();
  EXPECT_EQ(op->how, WaitHow::poll);
  EXPECT_EQ(op->operands.size(), 4U);
  op = cursor->next();
  EXPECT_EQ(op->kind, OperationKind::wait_all);
  EXPECT_EQ(op->how, WaitHow::interrupt);
  std::vector<OperationKind> rest;
  for (op = cursor->next(); op != nullptr; op = cursor->next()) {
    rest.push_back(op->kind);
    if (op->kind == OperationKind::get_buf_ptrs) {
      EXPECT_EQ(op->n, 4U);
    }
    if (op->kind == OperationKind::compute) {
      EXPECT_EQ(op->duration, Time::from_ns(1500));
    }
  }
  using K = OperationKind;
  EXPECT_THAT(rest, testing::ElementsAre(K::inc_epoch, K::get_epoch, K::get_buf_ptrs, K::rewind, K::close_window,
                                         K::compute, K::barrier, K::mark_begin, K::mark_end));
}

TEST(Trace, TakesAnyLineEndAndCommentsAndIndentation) {
  const std::string text =
      "# first\n\n   rvma-trace 1 # c\n\tranks 1\nrank 0#\n  put rank=0 mailbox=1 size=4 # as=x\n#put\n\t # \nbarrier";
  // `rank 0#`: the # does not follow a blank, so it is part of the word.
  ErrorList errors;
  EXPECT_EQ(Trace::from_text(text, "t", errors), nullptr);
  std::string good = text;
  good.replace(good.find("0#"), 2, "0 #");
  EXPECT_THAT(play(*read(good), 0), testing::ElementsAre("put seed=0", "barrier"));
  std::string crlf;
  for (const char c : good) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_THAT(play(*read(crlf), 0), testing::ElementsAre("put seed=0", "barrier"));
  EXPECT_THAT(play(*read(crlf + "\r"), 0), testing::ElementsAre("put seed=0", "barrier"));
  EXPECT_THAT(play(*read("\xef\xbb\xbf" + good), 0), testing::ElementsAre("put seed=0", "barrier"));
}

TEST(Trace, BlocksContinueAndRanksWithoutBlockAreEmpty) {
  const auto trace = read(header(3) +
                          "rank 0\nput as=a rank=1 mailbox=1 size=1\nrank 2\nbarrier\nrank 0\nput as=b rank=1 "
                          "mailbox=1 size=1\nwait a\nrank 0\nrank 2\nmark begin\n");
  EXPECT_THAT(play(*trace, 0), testing::ElementsAre("put a seed=0", "put b~ seed=1", "wait <a!>"));
  EXPECT_TRUE(play(*trace, 1).empty());
  EXPECT_TRUE(trace->names(RankId{1}).empty());
  EXPECT_THAT(play(*trace, 2), testing::ElementsAre("barrier", "mark_begin"));
  EXPECT_THAT(trace->names(RankId{0}), testing::ElementsAre("a", "b"));
}

TEST(Trace, SuffixesCountPassesOutermostFirst) {
  const auto trace = read(header(1) +
                          "rank 0\nrepeat 2\n put as=o rank=0 mailbox=1 size=1\n repeat 2\n  put as=p rank=0 mailbox=1 "
                          "size=1\n  wait o\n end\n wait p.1\nend\nwait p.0.1 p.1.0\nwait o.1\n");
  EXPECT_THAT(play(*trace, 0), testing::ElementsAre("put o.0 seed=0", "put p.0.0~ seed=1", "wait <o.0>",
                                                    "put p.0.1 seed=2", "wait <o.0!>", "wait <p.0.1>", "put o.1 seed=3",
                                                    "put p.1.0 seed=4", "wait <o.1>", "put p.1.1 seed=5", "wait <o.1>",
                                                    "wait <p.1.1!>", "wait <p.0.1!> <p.1.0!>", "wait <o.1!>"));
}

TEST(Trace, UsesInLaterLoopsAreLastInTheLastPass) {
  const auto trace = read(header(1) +
                          "rank 0\nput as=p rank=0 mailbox=1 size=1\nrepeat 2\n wait p\n repeat 2\n  wait p p\n "
                          "end\nend\nrepeat 0\n wait p\nend\n");
  EXPECT_THAT(play(*trace, 0), testing::ElementsAre("put p seed=0", "wait <p>", "wait <p> <p>", "wait <p> <p>",
                                                    "wait <p>", "wait <p> <p>", "wait <p> <p!>"));
  const auto unused = read(header(1) + "rank 0\nput as=p rank=0 mailbox=1 size=1\nrepeat 0\n wait p\nend\n");
  EXPECT_THAT(play(*unused, 0), testing::ElementsAre("put p~ seed=0"));
}

TEST(Trace, RestartBlocksAreProgramsOfTheirOwn) {
  const auto trace = read(header(2) +
                          "rank 0\nput as=a rank=1 mailbox=1 size=1\n  rank 0 restart\nput as=a rank=1 "
                          "mailbox=1 size=1\nrank 0\nwait a\nrank 0 restart\nwait a\n");
  EXPECT_THAT(play(*trace, 0), testing::ElementsAre("put a seed=0", "wait <a!>"));
  EXPECT_EQ(trace->total_operations(), 2U);
  EXPECT_TRUE(trace->warnings().empty());
  ASSERT_EQ(trace->restart_blocks().size(), 1U);
  EXPECT_EQ(trace->restart_blocks()[0].first, RankId{0});
  EXPECT_EQ(trace->restart_blocks()[0].second.line, 5U);
  EXPECT_EQ(trace->restart_cursor(RankId{1}), nullptr);
  const auto cursor = trace->restart_cursor(RankId{0});
  ASSERT_NE(cursor, nullptr);
  const Operation* put = cursor->next();
  ASSERT_NE(put, nullptr);
  EXPECT_TRUE(put->name.restarted);
  EXPECT_EQ(trace->spelling(RankId{0}, put->name), "a");
  const Operation* wait = cursor->next();
  ASSERT_NE(wait, nullptr);
  EXPECT_TRUE(wait->operands[0].restarted);
  EXPECT_EQ(wait->operands[0], NameRef({0, {}, true}));
  EXPECT_EQ(cursor->next(), nullptr);
}

TEST(Trace, HugeRepeatsCheckAtOnceAndPlayFast) {
  const auto begin = std::chrono::steady_clock::now();
  const auto trace = read(header(1) +
                          "rank 0\nrepeat 1000000000000\n repeat 1000000000000\n end\n repeat 3\n  put as=p rank=0 "
                          "mailbox=1 size=1\n end\nend\nrepeat 18446744073709551615\nrepeat "
                          "18446744073709551615\nbarrier\nend\nend\nwait p.999999999999.2\n");
  ASSERT_NE(trace, nullptr);
  EXPECT_EQ(trace->total_puts(), 3'000'000'000'000U);
  EXPECT_EQ(trace->total_operations(), std::numeric_limits<std::uint64_t>::max()) << "saturates";
  const auto cursor = trace->cursor(RankId{0});
  for (std::uint64_t i = 0; i < 3'000'000; ++i) {
    const Operation* op = cursor->next();
    ASSERT_EQ(op->seed, i);
    ASSERT_EQ(op->name.passes[0], i / 3);
    ASSERT_EQ(op->name.passes[1], i % 3);
    ASSERT_TRUE(op->name_never_used);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Trace, EmptyHugeLoopsEnd) {
  const auto trace = read(header(1) +
                          "rank 0\nrepeat 1000000000000\nend\nrepeat 1000000000000\nrepeat 0\nbarrier\n"
                          "end\nend\nmark end\n");
  EXPECT_THAT(play(*trace, 0), testing::ElementsAre("mark_end"));
}

// ----------------------------------------------------------------------------------------------------------------- bad

struct BadCase {
  const char* body;      ///< behind "rvma-trace 1\nranks 2\n", so its first line is line 3
  const char* position;  ///< LINE:COLUMN
  const char* says;
  const char* hint;
};

const BadCase kBadCases[] = {
    {"rank 0\nputt rank=1 mailbox=1 size=1\n", "4:1", "unknown operation 'putt'", "did you mean 'put'?"},
    {"rank 0\n  frobnicate\n", "4:3", "unknown operation 'frobnicate'", "expected an operation"},
    {"rank 0\nput rnk=1 mailbox=1 size=1 rank=1\n", "4:5", "unknown argument 'rnk' of 'put'", "did you mean 'rank'?"},
    {"rank 0\nbarrier x=1\n", "4:9", "unknown argument 'x' of 'barrier'", "it takes none"},
    {"rank 0\nbarrier now\n", "4:9", "unexpected 'now'", "expected the end of the line"},
    {"rank 0\nput rank=1 mailbox=1\n", "4:1", "missing argument of 'put'", "expected size=SIZE"},
    {"rank 0\n put\n", "4:2", "missing argument of 'put'", "expected mailbox=A size=SIZE rank=R"},
    {"rank 0\nput rank=1 mailbox=1 size=1 size=1\n", "4:29", "argument 'size' is given twice", "once"},
    {"rank 0\nput rank=1 mailbox=1 size=\n", "4:27", "argument 'size' has no value", "expected size=SIZE"},
    {"rank 0\nput rank=2 mailbox=1 size=1\n", "4:10", "rank 2 is out of range", "expected 0..1"},
    {"rank 0\nput rank=1 mailbox=1 size=-4\n", "4:27", "size: '-4' is negative", "expected a size"},
    {"rank 0\nput rank=1 mailbox=1 size=4us\n", "4:27", "size: '4us' has the unknown unit 'us'", "expected a size"},
    {"rank 0\nput rank=1 mailbox=1 size=nan\n", "4:27", "size: ", "expected a size"},
    {"rank 0\nput rank=1 mailbox=0x10000000000000000 size=1\n", "4:20", "mailbox: ", "at most"},
    {"rank 0\nput rank=1 mailbox=1 size=1 key=0x100000000\n", "4:33", "key: ", "at most"},
    {"rank 0\ncompute 100\n", "4:9", "'100' has no unit", "expected a time"},
    {"rank 0\ncompute 12cyc\n", "4:9", "'12cyc' has the unknown unit 'cyc'", "expected a time"},
    {"rank 0\ncompute\n", "4:8", "missing time", "expected 'compute T'"},
    {"rank 0\ninit_window mailbox=1 threshold=1\n", "4:13", "missing window name", "expected 'init_window W'"},
    {"rank 0\ninit_window w mailbox=1 threshold=0\n", "4:35", "the threshold is 0", "at least 1 byte"},
    {"rank 0\ninit_window w mailbox=1 threshold=0op\n", "4:35", "the threshold is 0", "at least 1 byte"},
    {"rank 0\ninit_window w mailbox=1 threshold=5ops\n", "4:35", "threshold: '5ops'", "5op"},
    {"rank 0\ninit_window w mailbox=1 threshold=1 placement=steerd\n", "4:47", "placement: ", "steered"},
    {"rank 0\ninit_window w mailbox=1 threshold=1 readble\n", "4:37", "unknown flag 'readble'",
     "did you mean 'readable'?"},
    {"rank 0\ninit_window w mailbox=1 threshold=1 readable readable\n", "4:46", "flag 'readable' is given twice",
     "once"},
    {"rank 0\ninit_window 1w mailbox=1 threshold=1\n", "4:13", "bad name '1w'", "expected letters"},
    {"rank 0\ninit_window all mailbox=1 threshold=1\n", "4:13", "the name 'all' is reserved", "another name"},
    {"rank 0\nput as=all rank=1 mailbox=1 size=1\n", "4:8", "the name 'all' is reserved", "another name"},
    {"rank 0\nput as=p.1 rank=1 mailbox=1 size=1\n", "4:8", "bad name 'p.1'", "expected letters"},
    {"rank 0\ninit_window w mailbox=1 threshold=1\npost_buffer w size=0\n", "5:20", "the buffer's size is 0", "1 byte"},
    {"rank 0\ninit_window w mailbox=1 threshold=1\npost_buffer w size=1 align=3\n", "5:28", "alignment '3'", "power"},
    {"rank 0\npost_buffer w size=1\n", "4:13", "unknown name 'w'", "expected a name"},
    {"rank 0\nput as=first rank=1 mailbox=1 size=1\nwait frist\n", "5:6", "unknown name 'frist'",
     "did you mean 'first'?"},
    {"rank 1\nput as=p rank=1 mailbox=1 size=1\nrank 0\nwait p\n", "6:6", "unknown name 'p'", "this rank"},
    {"rank 0\nwait p\nput as=p rank=1 mailbox=1 size=1\n", "4:6", "'p' is used before its definition", "line 5"},
    {"rank 0\nrepeat 2\nwait p\nput as=p rank=1 mailbox=1 size=1\nend\n", "5:6", "'p' is used before", "line 6"},
    {"rank 0\nput as=p rank=1 mailbox=1 size=1\nput as=p rank=1 mailbox=1 size=1\n", "5:8", "'p' is already defined",
     "line 4"},
    {"rank 0\ninit_window w mailbox=1 threshold=1\nput as=w rank=1 mailbox=1 size=1\n", "5:8", "'w' is already defined",
     "line 4"},
    {"rank 0\nput as=p rank=1 mailbox=1 size=1\nrepeat 2\nput as=p rank=1 mailbox=1 size=1\nend\n", "6:8",
     "'p' is already defined", "line 4"},
    {"rank 0\ninit_window w mailbox=1 threshold=1\nwait w\n", "5:6", "'w' is a window", "expected a buffer"},
    {"rank 0\nput as=p rank=1 mailbox=1 size=1\npost_buffer p size=4\n", "5:13", "'p' is a put", "expected a window"},
    {"rank 0\nwait\n", "4:5", "nothing to wait for", "wait all"},
    {"rank 0\nput as=p rank=1 mailbox=1 size=1\nwait p all\n", "5:8", "'all' stands with other names", "alone"},
    {"rank 0\nput as=p rank=1 mailbox=1 size=1\nwait p how=spin\n", "5:12", "how: ", "mwait"},
    {"rank 0\nrepeat 3\nput as=p rank=1 mailbox=1 size=1\nend\nwait p\n", "7:6", "'p' needs 1 pass number",
     "expected 'p.i'"},
    {"rank 0\nrepeat 3\nput as=p rank=1 mailbox=1 size=1\nwait p.0\nend\n", "6:6", "'p.0' has a suffix",
     "expected 'p'"},
    {"rank 0\nrepeat 3\nput as=p rank=1 mailbox=1 size=1\nend\nwait p.3\n", "7:6", "'p.3': there is no such pass",
     "line 4 has 3 passes"},
    {"rank 0\nrepeat 0\nput as=p rank=1 mailbox=1 size=1\nend\nwait p.0\n", "7:6", "there is no such pass", "0 passes"},
    {"rank 0\nrepeat 3\nput as=p rank=1 mailbox=1 size=1\nend\nwait p.01\n", "7:6", "bad name 'p.01'", "suffix"},
    {"rank 0\nrepeat 3\nrepeat 2\nput as=p rank=1 mailbox=1 size=1\nend\nend\nwait p.1\n", "9:6",
     "'p.1' needs 2 pass numbers", "expected 'p.i.j'"},
    {"rank 0\n  repeat 2\nbarrier\n", "4:3", "unterminated 'repeat'", "expected 'end'"},
    {"rank 0\nrepeat 2\nbarrier\nrank 1\nbarrier\n", "4:1", "unterminated 'repeat'", "expected 'end'"},
    {"rank 0\nbarrier\nend\n", "5:1", "'end' without 'repeat'", "repeat N"},
    {"rank 0\nrepeat\nend\n", "4:7", "missing count", "expected 'repeat N'"},
    {"rank 0\nrepeat 1.5\nend\n", "4:8", "'1.5'", "count"},
    {"rank 0\nrepeat 2 times\nend\n", "4:10", "unexpected 'times'", "end of the line"},
    {"rank 2\nbarrier\n", "3:6", "rank 2 is out of range", "expected 0..1"},
    {"rank 0 restrt\nbarrier\n", "3:8", "unexpected 'restrt'", "end of the line"},
    {"rank 0 restart\nwait x\n", "4:6", "unknown name 'x'", "expected a name"},
    {"rank\n", "3:5", "missing rank", "expected 'rank R'"},
    {"barrier\nrank 0\n", "3:1", "'barrier' stands before the first 'rank R' line", "expected 'rank R'"},
    {"ranks 2\n", "3:1", "a second 'ranks' line", "once"},
    {"rvma-trace 1\n", "3:1", "a second header", "first line"},
    {"rank 0\nmark start\n", "4:6", "unknown mark 'start'", "'begin' or 'end'"},
    {"rank 0\nmark\n", "4:5", "missing 'begin' or 'end'", "mark begin"},
    {"rank 0\nget_buf_ptrs w\n", "4:1", "missing argument of 'get_buf_ptrs'", "n=N"},
};

std::string place(const Error& error) {
  return std::to_string(error.position.line) + ":" + std::to_string(error.position.column);
}

TEST(TraceMistakes, StandAtTheirPlaceAndSayWhatWasExpected) {
  for (const BadCase& bad : kBadCases) {
    SCOPED_TRACE(bad.body);
    for (const bool crlf : {false, true}) {
      std::string text;
      for (const char c : header(2) + bad.body) text += c == '\n' && crlf ? std::string("\r\n") : std::string(1, c);
      ErrorList errors;
      EXPECT_EQ(Trace::from_text(text, "some.trace", errors), nullptr);
      ASSERT_FALSE(errors.empty());
      const Error& first = errors.shown()[0];
      EXPECT_EQ(place(first), bad.position) << first.to_string();
      EXPECT_THAT(first.what, HasSubstr(bad.says));
      EXPECT_THAT(first.expected, HasSubstr(bad.hint));
      EXPECT_EQ(first.position.source, "some.trace");
    }
  }
}

TEST(TraceMistakes, OfTheWholeFile) {
  using std::string_literals::operator""s;
  const struct {
    std::string text;
    const char* position;
    const char* says;
  } cases[] = {
      {"", "1:1", "empty"},
      {" \r\n\n\t", "1:1", "only blanks"},
      {"# only\n# this\n", "1:1", "no trace, only comments"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "1:1", "Git-LFS pointer"},
      {"rvma-trace 1\nranks 1\n\0\0"s, "1:1", "binary"},
      {"hello world\nfoo\nbar\n", "1:1", "missing header"},
      {"\n  ranks 1\nrank 0\nbarrier\n", "2:3", "missing header"},
      {"rvma-trace 2\nranks 1\nwhatever\n", "1:12", "unsupported trace header"},
      {"rvma-trace\nranks 1\n", "1:1", "unsupported trace header"},
      {"rvma-trace 1\nrank 0\nbarrier\n", "2:1", "missing 'ranks N'"},
      {"rvma-trace 1\n", "1:1", "missing 'ranks N'"},
      {"rvma-trace 1\nranks 0\n", "2:7", "ranks 0"},
      {"rvma-trace 1\nranks 1048577\n", "2:7", "'1048577' is too large"},
      {"rvma-trace 1\nranks 1\nrank 0\n" + std::string(70000, 'x') + "\nbarrier\n", "4:1", "the line is too long"},
  };
  for (const auto& bad : cases) {
    SCOPED_TRACE(bad.text.substr(0, 60));
    ErrorList errors;
    EXPECT_EQ(Trace::from_text(bad.text, "t", errors), nullptr);
    ASSERT_EQ(errors.count(), 1U) << errors.shown()[1].to_string();
    EXPECT_EQ(place(errors.shown()[0]), bad.position);
    EXPECT_THAT(errors.shown()[0].what, HasSubstr(bad.says));
  }
}

TEST(TraceMistakes, AllAreCountedAndSorted) {
  std::string text = header(1) + "rank 0\nrepeat 2\n";
  for (int i = 0; i < 30; ++i) text += "wait x\n";
  ErrorList errors;
  EXPECT_EQ(Trace::from_text(text, "t", errors), nullptr);
  EXPECT_EQ(errors.count(), 31U);
  ASSERT_EQ(errors.shown().size(), ErrorList::kShown);
  EXPECT_THAT(errors.shown()[0].what, HasSubstr("unterminated"));
  for (std::size_t i = 1; i < errors.shown().size(); ++i) EXPECT_EQ(errors.shown()[i].position.line, 4 + i);
}

TEST(TraceMistakes, AMistakenOperationStillDefinesItsName) {
  ErrorList errors;
  EXPECT_EQ(Trace::from_text(header(1) + "rank 0\nput as=p rank=9 mailbox=1 size=q\nwait p\n", "t", errors), nullptr);
  EXPECT_EQ(errors.count(), 2U);
}

TEST(TraceMistakes, DeepNestingIsOneMistake) {
  std::string text = header(1) + "rank 0\n";
  for (int i = 0; i < 40; ++i) text += "repeat 1\n";
  text += "put as=p rank=0 mailbox=1 size=1\n";
  for (int i = 0; i < 40; ++i) text += "end\n";
  ErrorList errors;
  EXPECT_EQ(Trace::from_text(text, "t", errors), nullptr);
  ASSERT_EQ(errors.count(), 1U);
  EXPECT_EQ(place(errors.shown()[0]), "36:1");
}

TEST(Trace, LineOfTheGreatestLengthIsRead) {
  std::string line = "put rank=0 mailbox=1 size=1 #";
  line += std::string(trace_detail::kMaxLineBytes - line.size(), 'x');
  EXPECT_THAT(play(*read(header(1) + "rank 0\n" + line + "\nbarrier\n"), 0),
              testing::ElementsAre("put seed=0", "barrier"));
  ErrorList errors;
  EXPECT_EQ(Trace::from_text(header(1) + "rank 0\n" + line + "x\nbarrier\n", "t", errors), nullptr);
  EXPECT_EQ(errors.count(), 1U);
}

// --------------------------------------------------------------------------------------------------------------- files

class TraceFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "rvma_trace_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = std::filesystem::canonical(name).string();
    std::string body;
    for (int i = 0; i < 5000; ++i) {
      body += "put as=name_" + std::to_string(i) + " rank=0 mailbox=" + std::to_string(i * 7919) + " size=1\n";
      body += "wait name_" + std::to_string(i) + "\n";
    }
    text_ = header(1) + "rank 0\n" + body;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& bytes) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  void expect_plays(const std::string& path) {
    ErrorList errors;
    const auto trace = Trace::open(path, errors);
    ASSERT_NE(trace, nullptr) << errors.shown()[0].to_string();
    EXPECT_EQ(trace->total_puts(), 5000U);
    const auto all = play(*trace, 0, 20000);
    ASSERT_EQ(all.size(), 10000U);
    EXPECT_EQ(all[9998], "put name_4999 seed=4999");
    EXPECT_EQ(all[9999], "wait <name_4999!>");
  }
  void expect_refused(const std::string& path, const std::string& says, const std::string& source) {
    ErrorList errors;
    EXPECT_EQ(Trace::open(path, errors), nullptr);
    ASSERT_EQ(errors.count(), 1U);
    EXPECT_THAT(errors.shown()[0].what, HasSubstr(says));
    EXPECT_EQ(errors.shown()[0].position.source, source);
    EXPECT_EQ(place(errors.shown()[0]), "1:1");
  }

  std::string directory_;
  std::string text_;
};

std::string gzip(const std::string& text) {
  std::string packed(text.size() + 1024, '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string copy = text;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size = ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3);
  EXPECT_EQ(ZSTD_isError(size), 0U);
  packed.resize(size);
  return packed;
}

TEST_F(TraceFile, PlainPackedAndSpliced) {
  expect_plays(write("plain.trace", text_));
  expect_plays(write("noend.trace", text_.substr(0, text_.size() - 1)));
  expect_plays(write("a.trace.gz", gzip(text_)));
  expect_plays(write("a.trace.zst", zstd(text_)));
  expect_plays(write("named_otherwise", gzip(text_)));
  // Several members or frames are one text.
  const std::size_t cut = text_.size() / 3;
  expect_plays(write("two.gz", gzip(text_.substr(0, cut)) + gzip(text_.substr(cut))));
  expect_plays(write("two.zst", zstd(text_.substr(0, cut)) + zstd(text_.substr(cut))));
}

TEST_F(TraceFile, TruncatedOrDamaged) {
  const std::string gz = gzip(text_);
  const std::string zst = zstd(text_);
  for (const std::size_t cut : {std::size_t{1}, std::size_t{8}, gz.size() / 2}) {
    const std::string path = write("cut.gz", gz.substr(0, gz.size() - cut));
    expect_refused(path, "truncated gzip", path);
  }
  for (const std::size_t cut : {std::size_t{1}, zst.size() / 2}) {
    const std::string path = write("cut.zst", zst.substr(0, zst.size() - cut));
    expect_refused(path, "truncated zstd", path);
  }
  std::string bad = gz;
  bad[bad.size() - 6] = static_cast<char>(bad[bad.size() - 6] ^ 0x55);  // in the CRC
  std::string path = write("bad.gz", bad);
  expect_refused(path, "damaged gzip", path);
  path = write("garbage.gz", gz + "garbage");
  expect_refused(path, "damaged gzip", path);
  path = write("empty.gz", gzip(""));
  expect_refused(path, "empty", path);
}

TEST_F(TraceFile, UnreadableIsNamedAsItWasGiven) {
  const std::string missing = directory_ + "/./sub/../missing.trace";
  expect_refused(missing, "No such file", missing);
  expect_refused(directory_, "directory", directory_);
  const std::string path = write("empty.trace", "");
  expect_refused(path, "empty", path);
}

TEST_F(TraceFile, WhatHasNoEndIsRefused) {
  expect_refused("/dev/zero", "binary", "/dev/zero");
  expect_refused("/dev/urandom", "binary", "/dev/urandom");
}

TEST_F(TraceFile, ALineWithoutAnEndEndsTheSpooling) {
  // Packed: 64 MiB of one line, which nothing should have to unpack to its end.
  const std::string endless = "rvma-trace 1\n" + std::string(64UL * 1024 * 1024, 'a');
  for (const std::string& bytes : {gzip(endless), zstd(endless)}) {
    ErrorList errors;
    EXPECT_EQ(Trace::open(write("endless", bytes), errors), nullptr);
    ASSERT_EQ(errors.count(), 1U);
    EXPECT_EQ(errors.shown()[0].position.line, 2U);
    EXPECT_EQ(errors.shown()[0].what, "the line is too long");
  }
}

TEST_F(TraceFile, AnOperationKnowsItsPlace) {
  const std::string text = "rvma-trace 1\nranks 1\n# first\nrank 0\n  repeat 2\n\tcompute 1ns\n  end\ncompute 2ns";
  for (const std::string& bytes : {text, gzip(text)}) {
    ErrorList errors;
    const auto trace = Trace::open(write("placed", bytes), errors);
    ASSERT_NE(trace, nullptr);
    const auto cursor = trace->cursor(RankId{0});
    std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
    while (const Operation* operation = cursor->next()) {
      const Position position = trace->position(*operation);
      places.emplace_back(position.line, position.column);
    }
    const std::vector<std::pair<std::uint64_t, std::uint64_t>> expected{{6, 2}, {6, 2}, {8, 1}};
    EXPECT_EQ(places, expected);
  }
}

TEST_F(TraceFile, StandardInputIsSpooledPlainOrPacked) {
  for (const std::string& bytes : {text_, gzip(text_), zstd(text_)}) {
    const std::string path = write("in", bytes);
    const int saved = ::dup(STDIN_FILENO);
    const int file = ::open(path.c_str(), O_RDONLY);
    ASSERT_GE(file, 0);
    ::dup2(file, STDIN_FILENO);
    ::close(file);
    expect_plays("-");
    ::dup2(saved, STDIN_FILENO);
    ::close(saved);
  }
}

// -------------------------------------------------------------------------------------------------------------- random

/// A random program of one rank as a tree, its text, and its operations unrolled by walking the tree.
class RandomProgram {
 public:
  explicit RandomProgram(Random& random) : random_(random) {
    block(0, 1 + random_.below(8));
    expand();
  }
  const std::string& text() const { return text_; }
  const std::vector<std::string>& unrolled() const { return unrolled_; }

 private:
  struct Name {
    std::string text;
    std::vector<std::size_t> loops;  ///< ids
    OperationKind kind;
  };
  struct Use {
    std::size_t name;
    std::size_t common;
    std::vector<std::uint64_t> suffix;
  };
  struct Node {
    bool loop = false;
    std::uint64_t count = 0;
    std::vector<Node> body;
    OperationKind kind = OperationKind::barrier;
    bool named = false;
    std::size_t name = 0;
    bool seeded = false;
    std::vector<Use> uses;
  };
  struct Played {
    const Node* node;
    std::string name;
    std::vector<std::string> operands;
    std::uint64_t seed;
  };

  void block(std::size_t depth, std::uint64_t length) { root_ = make_body(depth, length); }

  std::vector<Node> make_body(std::size_t depth, std::uint64_t length) {
    std::vector<Node> body;
    for (std::uint64_t i = 0; i < length; ++i) {
      if (depth < 3 && random_.below(4) == 0) {
        body.push_back(make_loop(depth));
      } else {
        body.push_back(make_operation());
      }
    }
    return body;
  }

  Node make_loop(std::size_t depth) {
    Node node;
    node.loop = true;
    node.count = random_.below(12) == 0 ? 0 : 1 + random_.below(3);
    text_ += "repeat " + std::to_string(node.count) + "\n";
    open_.push_back(loop_counts_.size());
    loop_counts_.push_back(node.count);
    node.body = make_body(depth + 1, random_.below(6));
    open_.pop_back();
    text_ += "end\n";
    return node;
  }

  Node make_operation() {
    Node node;
    std::string line;
    switch (random_.below(5)) {
      case 0:
        node.kind = OperationKind::init_window;
        line = "init_window " + new_name(node) + " mailbox=1 threshold=1";
        break;
      case 1:
        node.kind = OperationKind::post_buffer;
        if (!pick(node, true, line)) return barrier(node);
        line = "post_buffer" + line + " size=1";
        if (random_.below(2) == 0) line += " as=" + new_name(node);
        break;
      case 2:
        node.kind = OperationKind::wait;
        for (std::uint64_t i = 0; i < 1 + random_.below(3); ++i) pick(node, false, line);
        if (node.uses.empty()) return barrier(node);
        line = "wait" + line;
        break;
      default:
        node.kind = OperationKind::put;
        line = "put rank=0 mailbox=1 size=1";
        if (random_.below(3) != 0) line += " as=" + new_name(node);
        node.seeded = random_.below(4) == 0;
        if (node.seeded) line += " seed=777";
        break;
    }
    text_ += line + "\n";
    // The block may be left and taken up again, but not inside a loop.
    if (open_.empty() && random_.below(6) == 0)
      text_ += "rank 1\nput as=x" + std::to_string(other_++) + " rank=0 mailbox=1 size=1\nrank 0\n";
    return node;
  }

  Node barrier(Node& node) {
    node.kind = OperationKind::barrier;
    text_ += "barrier\n";
    return node;
  }

  std::string new_name(Node& node) {
    node.named = true;
    node.name = names_.size();
    names_.push_back({"n" + std::to_string(names_.size()), open_, node.kind});
    return names_.back().text;
  }

  bool pick(Node& node, bool window, std::string& line) {
    std::vector<std::size_t> candidates;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if ((names_[i].kind == OperationKind::init_window) == window) candidates.push_back(i);
    }
    if (candidates.empty()) return false;
    const std::size_t number = candidates[random_.below(candidates.size())];
    const Name& name = names_[number];
    Use use{number, 0, {}};
    while (use.common < name.loops.size() && use.common < open_.size() && name.loops[use.common] == open_[use.common])
      ++use.common;
    std::string word = " " + name.text;
    for (std::size_t i = use.common; i < name.loops.size(); ++i) {
      const std::uint64_t count = loop_counts_[name.loops[i]];
      if (count == 0) return false;
      use.suffix.push_back(random_.below(count));
      word += "." + std::to_string(use.suffix.back());
    }
    node.uses.push_back(use);
    line += word;
    return true;
  }

  std::string spelling(std::size_t name, const std::vector<std::uint64_t>& passes) const {
    std::string text = names_[name].text;
    for (const std::uint64_t pass : passes) text += "." + std::to_string(pass);
    return text;
  }

  void walk(const std::vector<Node>& body, std::vector<std::uint64_t>& passes) {
    for (const Node& node : body) {
      if (node.loop) {
        for (std::uint64_t pass = 0; pass < node.count; ++pass) {
          passes.push_back(pass);
          walk(node.body, passes);
          passes.pop_back();
        }
        continue;
      }
      Played played{&node, node.named ? spelling(node.name, passes) : "", {}, puts_};
      for (const Use& use : node.uses) {
        std::vector<std::uint64_t> instance(passes.begin(), passes.begin() + static_cast<std::ptrdiff_t>(use.common));
        instance.insert(instance.end(), use.suffix.begin(), use.suffix.end());
        played.operands.push_back(spelling(use.name, instance));
      }
      if (node.kind == OperationKind::put) ++puts_;
      played_.push_back(played);
    }
  }

  void expand() {
    std::vector<std::uint64_t> passes;
    walk(root_, passes);
    std::map<std::string, std::pair<std::size_t, std::size_t>> last;
    for (std::size_t i = 0; i < played_.size(); ++i) {
      for (std::size_t k = 0; k < played_[i].operands.size(); ++k) last[played_[i].operands[k]] = {i, k};
    }
    for (std::size_t i = 0; i < played_.size(); ++i) {
      const Played& played = played_[i];
      std::string text = ValueText<OperationKind>::print(played.node->kind);
      if (played.node->named) text += " " + played.name + (last.count(played.name) == 0 ? "~" : "");
      for (std::size_t k = 0; k < played.operands.size(); ++k) {
        const bool is_last = last[played.operands[k]] == std::make_pair(i, k);
        text += " <" + played.operands[k] + (is_last ? "!>" : ">");
      }
      if (played.node->kind == OperationKind::put)
        text += " seed=" + std::to_string(played.node->seeded ? 777 : played.seed);
      unrolled_.push_back(text);
    }
  }

  Random& random_;
  std::string text_;
  std::vector<Node> root_;
  std::vector<Name> names_;
  std::vector<std::size_t> open_;
  std::vector<std::uint64_t> loop_counts_;
  std::vector<Played> played_;
  std::uint64_t puts_ = 0;
  std::size_t other_ = 0;
  std::vector<std::string> unrolled_;
};

TEST(TraceRandom, PlaysLikeANaiveUnrolling) {
  std::size_t operations = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    const RandomProgram program(random);
    const std::string text = header(2) + "rank 0\n" + program.text();
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    const auto trace = read(text);
    ASSERT_NE(trace, nullptr);
    ASSERT_EQ(play(*trace, 0, 1U << 20U), program.unrolled());
    operations += program.unrolled().size();

    // The same with loops read from the text again and again, through a cache of any size.
    auto source = trace_detail::text_in_memory(text, "t");
    ErrorList errors;
    const auto checked = trace_detail::check_trace(**source, "t", errors);
    for (const std::uint32_t statements : {0U, 3U}) {
      trace_detail::Statement scratch;
      const auto cursor =
          trace_detail::make_cursor(**source, *checked.programs[0], {1 + random.below(200), statements}, scratch);
      std::vector<std::string> all;
      while (const Operation* op = cursor->next()) all.push_back(summary(*trace, RankId{0}, *op));
      ASSERT_EQ(all, program.unrolled());
    }
  }
  EXPECT_GT(operations, 20000U);
}

TEST(TraceRandom, ByteNoiseNeverCrashes) {
  const std::string base = header(2) +
                           "rank 0\ninit_window w mailbox=1 threshold=4KiB\nrepeat 3\npost_buffer w as=b size=4KiB\n"
                           "put as=p rank=1 mailbox=2 size=1 key=3\nwait b p how=poll\nend\nwait b.1 p.2\nrank 1\n"
                           "compute 5ns\nwait all\n";
  std::size_t valid = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    std::string text = base;
    for (std::uint64_t i = 0; i < 1 + random.below(3); ++i) {
      const std::size_t at = random.below(text.size());
      if (random.below(2) == 0) text[at] = static_cast<char>(random.below(256));
      if (random.below(2) == 0) text.erase(at, random.below(20));
      if (text.empty()) text = " ";
    }
    ErrorList errors;
    const auto trace = Trace::from_text(text, "t", errors);
    ASSERT_EQ(trace == nullptr, !errors.empty());
    if (trace == nullptr) continue;
    ++valid;
    for (std::uint32_t rank = 0; rank < std::min(trace->ranks(), 4U); ++rank) play(*trace, rank, 1000);
  }
  EXPECT_GT(valid, 50U);
}

}  // namespace
}  // namespace rvma
