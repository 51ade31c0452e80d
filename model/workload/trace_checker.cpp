#include "workload/trace_checker.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "nic/descriptor.hpp"
#include "workload/trace_syntax.hpp"

namespace rvma::trace_detail {
namespace {

constexpr std::size_t kCheckCacheBytes = 256 * 1024;

std::string name_kind(NameKind kind) {
  switch (kind) {
    case NameKind::window:
      return "a window";
    case NameKind::buffer:
      return "a buffer";
    case NameKind::put:
      return "a put";
    case NameKind::message:
      return "a message";
    case NameKind::get:
      break;
  }
  return "a get";
}

NameKind kind_defined_by(OperationKind kind) {
  if (kind == OperationKind::init_window) return NameKind::window;
  if (kind == OperationKind::put) return NameKind::put;
  if (kind == OperationKind::get) return NameKind::get;
  if (kind == OperationKind::send || kind == OperationKind::recv) return NameKind::message;
  return NameKind::buffer;
}

/// Mistakes with their places. An unterminated loop is found late but stands early, and whether an unknown name is
/// defined further on shows only at the end; so they are kept (a bounded number) and handed over sorted.
class MistakeLog {
 public:
  explicit MistakeLog(std::string source) : source_(std::move(source)) {}

  void add(std::uint64_t line, Mistake mistake) {
    ++count_;
    if (entries_.size() < kKept) entries_.push_back({line, std::move(mistake), nullptr, {}});
  }
  void add_unknown_name(std::uint64_t line, const Token& token, std::string_view base, const Program& program) {
    ++count_;
    if (entries_.size() < kKept)
      entries_.push_back({line, {token.column, rvma::quoted(token.text), {}}, &program, std::string(base)});
  }

  void hand_over(ErrorList& errors) {
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.line, a.mistake.column) < std::tie(b.line, b.mistake.column);
    });
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Entry& entry = entries_[i];
      if (entry.program != nullptr && i < ErrorList::kShown) explain_unknown_name(entry);
      errors.add({{source_, entry.line, entry.mistake.column},
                  std::move(entry.mistake.what),
                  std::move(entry.mistake.expected)});
    }
    for (std::uint64_t i = entries_.size(); i < count_; ++i) errors.add({});
  }

 private:
  static constexpr std::size_t kKept = 4 * ErrorList::kShown;

  struct Entry {
    std::uint64_t line;
    Mistake mistake;
    const Program* program;  ///< an unknown name: where to look for it
    std::string base;
  };

  static void explain_unknown_name(Entry& entry) {
    const std::uint32_t later = entry.program->find(entry.base);
    if (later != kNoName) {
      entry.mistake.what += " is used before its definition";
      entry.mistake.expected = "it is defined in line " + std::to_string(entry.program->info(later).line);
      return;
    }
    entry.mistake.what = "unknown name " + entry.mistake.what;
    const std::string near = nearest_name(entry.base, entry.program->names());
    entry.mistake.expected =
        near.empty() ? "expected a name that this rank has defined" : "did you mean '" + near + "'?";
  }

  std::string source_;
  std::vector<Entry> entries_;
  std::uint64_t count_ = 0;
};

class Checker {
 public:
  Checker(const TextSource& text, std::string source)
      : text_(text), source_(std::move(source)), log_(source_), reader_(text, kCheckCacheBytes) {}

  CheckedTrace run(ErrorList& errors) {
    skip_byte_order_mark();
    while (!stopped_ && reader_.next(line_)) {
      ++line_number_;
      check_line();
    }
    if (!stopped_) finish();
    log_.hand_over(errors);
    return std::move(result_);
  }

 private:
  struct OpenLoop {
    std::uint32_t loop;
    std::uint32_t column;
    std::uint64_t operations = 0;  ///< of one pass
    std::uint64_t puts = 0;
  };

  void mistake(const Token& token, std::string what, std::string expected) {
    log_.add(line_number_, {token.column, std::move(what), std::move(expected)});
  }

  void skip_byte_order_mark() {
    char mark[3] = {};
    if (text_.read(0, mark, 3) == 3 && std::string_view(mark, 3) == "\xef\xbb\xbf") reader_.seek(3);
  }

  void check_line() {
    if (line_.too_long) {
      return log_.add(line_number_, {1, "the line is too long: " + rvma::quoted(line_.text),
                                     "expected at most " + std::to_string(kMaxLineBytes) + " bytes"});
    }
    parse_statement(line_.text, statement_);
    if (statement_.kind == StatementKind::blank) return;
    if (!header_seen_) {
      header_seen_ = true;
      if (!check_header()) return;
    } else if (statement_.kind == StatementKind::header) {
      return mistake(statement_.word, "a second header", "expected it in the first line only");
    }
    for (Mistake& found : statement_.mistakes) log_.add(line_number_, std::move(found));
    switch (statement_.kind) {
      case StatementKind::ranks:
        return check_ranks();
      case StatementKind::rank:
        return check_rank();
      case StatementKind::repeat:
        return open_loop();
      case StatementKind::end:
        return close_loop();
      case StatementKind::operation:
        return check_operation();
      case StatementKind::blank:
      case StatementKind::header:
      case StatementKind::unknown:
        return;
    }
  }

  /// The first statement. False: nothing else is to be made of this line.
  bool check_header() {
    if (statement_.kind == StatementKind::header) {
      if (statement_.mistakes.empty() && statement_.number == 1) return true;
      const Token& place = statement_.tokens.size() > 1 ? statement_.tokens[1] : statement_.word;
      mistake(place, "unsupported trace header " + rvma::quoted(line_.text), "expected 'rvma-trace 1'");
      stopped_ = statement_.mistakes.empty();  // another version has another grammar
      return false;
    }
    mistake(statement_.word, "missing header, found " + rvma::quoted(statement_.word.text), "expected 'rvma-trace 1'");
    // A text that begins otherwise is no trace at all; one message says it.
    stopped_ = statement_.kind == StatementKind::unknown;
    return !stopped_;
  }

  void check_ranks() {
    if (ranks_seen_) return mistake(statement_.word, "a second 'ranks' line", "expected it once, behind the header");
    ranks_seen_ = true;
    if (!statement_.mistakes.empty()) return;
    if (statement_.number == 0) return mistake(statement_.number_token, "'ranks 0'", "expected at least 1 rank");
    if (program_ != nullptr) {
      mistake(statement_.word, "'ranks' stands behind the first block", "expected it behind the header");
    }
    result_.ranks = static_cast<std::uint32_t>(statement_.number);
    result_.programs.resize(result_.ranks);
  }

  void check_rank() {
    close_block();
    if (!ranks_seen_) {
      ranks_seen_ = true;
      mistake(statement_.word, "missing 'ranks N' before the first rank", "expected it behind the header");
    }
    in_restart_ = statement_.restart;
    const bool usable = statement_.mistakes.empty() && result_.ranks != 0;
    if (usable && statement_.number >= result_.ranks) report_rank_range(statement_.number_token, statement_.number);
    if (!usable || statement_.number >= result_.ranks) {
      program_ = &scratch_;  // still checked, as a program of its own
    } else if (statement_.restart) {
      program_ = &restart_program(static_cast<std::uint32_t>(statement_.number));
    } else {
      std::unique_ptr<Program>& program = result_.programs[statement_.number];
      if (program == nullptr) program = std::make_unique<Program>();
      program_ = program.get();
    }
    block_begin_ = reader_.offset();
  }

  void report_rank_range(const Token& token, std::uint64_t rank) {
    mistake(token, "rank " + std::to_string(rank) + " is out of range",
            "expected 0.." + std::to_string(result_.ranks - 1) + ", as the trace has 'ranks " +
                std::to_string(result_.ranks) + "'");
  }

  Program& restart_program(std::uint32_t rank) {
    result_.restart_programs.resize(result_.ranks);
    std::unique_ptr<Program>& program = result_.restart_programs[rank];
    if (program == nullptr) {
      program = std::make_unique<Program>();
      const Position place{source_, static_cast<std::uint32_t>(line_number_),
                           static_cast<std::uint32_t>(statement_.word.column)};
      result_.restart_blocks.emplace_back(RankId{rank}, place);
    }
    return *program;
  }

  /// The block ends before the current line.
  void close_block() {
    for (const OpenLoop& open : open_) {
      Loop& loop = program_->loops[open.loop];
      loop.after_end = line_.offset;
      log_.add(loop.line, {open.column, "unterminated 'repeat'", "expected 'end' in the same rank's block"});
    }
    open_.clear();
    open_ids_.clear();
    idle_loops_ = 0;
    if (program_ == nullptr) return;
    std::vector<Block>& blocks = program_->blocks;
    if (program_ != &scratch_ && line_.offset > block_begin_) blocks.push_back({block_begin_, line_.offset});
  }

  /// An operation or a loop must stand in a block.
  void require_block() {
    if (program_ != nullptr) return;
    mistake(statement_.word, rvma::quoted(statement_.word.text) + " stands before the first 'rank R' line",
            "expected 'rank R'");
    program_ = &scratch_;
    block_begin_ = line_.offset;
  }

  void open_loop() {
    require_block();
    count_statement();
    Loop loop;
    loop.begin = line_.offset;
    loop.body = reader_.offset();
    loop.after_end = text_.size();
    loop.count = statement_.mistakes.empty() ? statement_.number : 1;
    loop.parent = open_.empty() ? kNoLoop : open_.back().loop;
    loop.line = line32();
    loop.depth = static_cast<std::uint32_t>(open_.size() + 1);
    if (loop.depth == kMaxLoopDepth + 1) {
      mistake(statement_.word, "loops nest too deep", "expected at most " + std::to_string(kMaxLoopDepth) + " levels");
    }
    const auto number = static_cast<std::uint32_t>(program_->loops.size());
    program_->loops.push_back(loop);
    open_.push_back({number, statement_.word.column});
    open_ids_.push_back(number);
    if (loop.count == 0) ++idle_loops_;
  }

  void close_loop() {
    if (open_.empty()) {
      return mistake(statement_.word, "'end' without 'repeat'", "expected a 'repeat N' before it in this block");
    }
    const OpenLoop closed = open_.back();
    open_.pop_back();
    open_ids_.pop_back();
    Loop& loop = program_->loops[closed.loop];
    loop.after_end = reader_.offset();
    loop.plays = closed.operations > 0;
    if (loop.count == 0) --idle_loops_;
    std::uint64_t& operations = open_.empty() ? program_->operations : open_.back().operations;
    std::uint64_t& puts = open_.empty() ? program_->puts : open_.back().puts;
    operations = saturating_multiply_add(closed.operations, loop.count, operations);
    puts = saturating_multiply_add(closed.puts, loop.count, puts);
    if (open_.empty()) return;
    std::uint32_t& outer = program_->loops[open_.back().loop].statements;
    outer = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::uint64_t{outer} + loop.statements, std::numeric_limits<std::uint32_t>::max()));
  }

  void count_statement() {
    if (open_.empty()) return;
    std::uint32_t& statements = program_->loops[open_.back().loop].statements;
    if (statements != std::numeric_limits<std::uint32_t>::max()) ++statements;
  }

  void check_operation() {
    require_block();
    // 1. What it uses, 2. what it names, 3. what it amounts to.
    for (const Token& name : statement_.names) check_use(name);
    if (!statement_.defined.text.empty()) define(statement_.defined);
    if (!statement_.destination.text.empty() && result_.ranks != 0 &&
        statement_.operation.rank.value() >= result_.ranks) {
      report_rank_range(statement_.destination, statement_.operation.rank.value());
    }
    check_message();
    if ((statement_.operation.window_flags & kWindowCatchAll) != 0) program_->has_catch_all = true;
    count_statement();
    const std::uint64_t puts = statement_.operation.kind == OperationKind::put ? 1 : 0;
    std::uint64_t& operations = open_.empty() ? program_->operations : open_.back().operations;
    std::uint64_t& all_puts = open_.empty() ? program_->puts : open_.back().puts;
    operations = saturating_multiply_add(1, 1, operations);
    all_puts = saturating_multiply_add(puts, 1, all_puts);
  }

  /// The layer opens its channels before the programs begin: it has to know who talks to whom.
  void check_message() {
    const Operation& operation = statement_.operation;
    const bool is_send = operation.kind == OperationKind::send;
    if (!is_send && operation.kind != OperationKind::recv) return;
    if (in_restart_) {
      return mistake(statement_.word, rvma::quoted(statement_.word.text) + " in a block for a restart",
                     "expected puts and gets: messages do not survive a crash");
    }
    if (operation.rank.value() >= result_.ranks) return;
    PeerUse& use = program_->peers[operation.rank.value()];
    use.sends = use.sends || is_send;
    use.receives = use.receives || !is_send;
    if (is_send) use.longest_send = std::max(use.longest_send, operation.size);
  }

  void define(const Token& token) {
    if (const std::uint32_t known = program_->find(token.text); known != kNoName) {
      return mistake(token, "the name " + rvma::quoted(token.text) + " is already defined",
                     "expected another name; line " + std::to_string(program_->info(known).line) + " has this one");
    }
    NameInfo info;
    info.loop = open_.empty() ? kNoLoop : open_.back().loop;
    info.line = line32();
    info.kind = kind_defined_by(statement_.operation.kind);
    program_->define(token.text, info);
  }

  void check_use(const Token& token) {
    // 1. The name.
    std::string_view base;
    if (!split_name(token.text, base, reference_.suffix)) {
      return mistake(token, "bad name " + rvma::quoted(token.text), "expected a name, in loops with a suffix '.i'");
    }
    reference_.name = program_->find(base);
    if (reference_.name == kNoName) return log_.add_unknown_name(line_number_, token, base, *program_);
    // 2. What it stands for.
    const bool is_window = program_->info(reference_.name).kind == NameKind::window;
    const bool wants_window = statement_.syntax->operand == Operand::window;
    if (is_window != wants_window) {
      mistake(token, rvma::quoted(token.text) + " is " + name_kind(program_->info(reference_.name).kind),
              wants_window ? "expected a window" : "expected a buffer, a put, a get or a message");
    }
    // 3. Which pass.
    reference_.common = program_->common_loops(reference_.name, open_ids_);
    if (!check_suffix(token, base)) return;
    // 4. Loops of no pass use nothing.
    if (idle_loops_ == 0) program_->record_use(reference_, line_.offset + token.column);
  }

  bool check_suffix(const Token& token, std::string_view base) {
    const std::uint32_t wanted = program_->depth(reference_.name) - reference_.common;
    if (reference_.suffix.size() != wanted) {
      std::string form(base);
      for (std::uint32_t i = 0; i < wanted; ++i)
        form += i < 3 ? "." + std::string(1, static_cast<char>('i' + i)) : ".n";
      mistake(token,
              wanted == 0
                  ? rvma::quoted(token.text) + " has a suffix, but no loop that has ended made this name"
                  : rvma::quoted(token.text) + " needs " + std::to_string(wanted) +
                        (wanted == 1 ? " pass number" : " pass numbers") + ", of the loops around its definition",
              "expected '" + form + "'");
      return false;
    }
    for (std::uint32_t i = 0; i < wanted; ++i) {
      const Loop& loop = program_->loops[program_->loop_at(reference_.name, reference_.common + i + 1)];
      if (reference_.suffix[i] < loop.count) continue;
      mistake(token, rvma::quoted(token.text) + ": there is no such pass",
              "the loop of line " + std::to_string(loop.line) + " has " + std::to_string(loop.count) +
                  (loop.count == 1 ? " pass" : " passes") + ", numbered from 0");
      return false;
    }
    return true;
  }

  void finish() {
    if (reader_.offset() < text_.size()) {
      return log_.add(1, {1, "cannot read the whole trace", "expected " + std::to_string(text_.size()) + " bytes"});
    }
    line_.offset = text_.size();
    close_block();
    if (!header_seen_) return log_.add(1, {1, "the file holds no trace, only comments", "expected 'rvma-trace 1'"});
    if (!ranks_seen_) log_.add(line_number_, {1, "missing 'ranks N'", "expected it behind the header"});
  }

  std::uint32_t line32() const {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(line_number_, std::numeric_limits<std::uint32_t>::max()));
  }

  const TextSource& text_;
  std::string source_;
  MistakeLog log_;
  LineReader reader_;
  Line line_;
  std::uint64_t line_number_ = 0;
  Statement statement_;
  Reference reference_;  ///< scratch
  CheckedTrace result_;

  bool header_seen_ = false;
  bool ranks_seen_ = false;
  bool in_restart_ = false;  ///< the block is one for a restart
  bool stopped_ = false;     ///< nothing further can be understood
  Program* program_ = nullptr;
  std::uint64_t block_begin_ = 0;
  std::vector<OpenLoop> open_;
  std::vector<std::uint32_t> open_ids_;
  std::uint32_t idle_loops_ = 0;  ///< open loops of no pass
  Program scratch_;               ///< blocks that belong to no rank
};

}  // namespace

CheckedTrace check_trace(const TextSource& text, const std::string& source, ErrorList& errors) {
  return Checker(text, source).run(errors);
}

}  // namespace rvma::trace_detail
