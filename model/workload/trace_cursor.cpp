#include "workload/trace_cursor.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "workload/trace_syntax.hpp"

namespace rvma::trace_detail {
namespace {

constexpr const char* kChanged = "the trace changed while it was being played";

/// A place in the loops that a cursor is inside of, outermost first.
struct LoopStack {
  std::vector<std::uint32_t> loops;
  std::vector<std::uint64_t> passes;
  std::vector<std::uint64_t> counts;

  void push(std::uint32_t loop, std::uint64_t count) {
    loops.push_back(loop);
    passes.push_back(0);
    counts.push_back(count);
  }
  void pop() {
    loops.pop_back();
    passes.pop_back();
    counts.pop_back();
  }
  /// Whether all loops inside the `common` outermost ones are in their last pass.
  bool last_pass_below(std::size_t common) const {
    for (std::size_t i = common; i < counts.size(); ++i) {
      if (passes[i] + 1 != counts[i]) return false;
    }
    return true;
  }
};

/// An operation parsed from its line, and how to bring it up to date in each pass.
class PlayedOperation {
 public:
  Operation operation;

  /// `open`: the loops around the line.
  void resolve(const Program& program, const Statement& statement, std::uint64_t line_offset,
               const std::vector<std::uint32_t>& open) {
    std::swap(spare_operands_, operation.operands);  // keeps memory from line to line
    operation = statement.operation;
    std::swap(spare_operands_, operation.operands);
    operation.place = line_offset + statement.word.column - 1;
    seed_by_index_ = has_payload(operation.kind) && !operation.has_seed;
    // 1. The name that it defines.
    operation.has_name = !statement.defined.text.empty();
    if (operation.has_name) {
      operation.name.name = program.find(statement.defined.text);
      RVMA_ASSERT(operation.name.name != kNoName, kChanged);
    }
    // 2. The names that it uses.
    operation.operands.resize(statement.names.size());
    operation.last_use.assign(statement.names.size(), false);
    uses_.resize(statement.names.size());
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      Use& use = uses_[i];
      std::string_view base;
      const bool well_formed = split_name(statement.names[i].text, base, use.reference.suffix);
      use.reference.name = program.find(base);
      RVMA_ASSERT(well_formed && use.reference.name != kNoName, kChanged);
      use.reference.common = program.common_loops(use.reference.name, open);
      use.last_site = is_last_site(program, use.reference, line_offset + statement.names[i].column);
      operation.operands[i].name = use.reference.name;
    }
  }

  /// For the pass that `stack` stands at; `put_index` is the number of puts played so far.
  void update(const Program& program, const LoopStack& stack, std::uint64_t& put_index) {
    if (has_payload(operation.kind)) {
      if (seed_by_index_) operation.seed = put_index;
      ++put_index;
    }
    if (operation.has_name) {
      NameRef& name = operation.name;
      name.passes.assign(stack.passes.begin(), stack.passes.end());
      const NameInfo& info = program.info(name.name);
      operation.name_never_used =
          info.last_inner_use == 0 &&
          !program.used_by_suffix(name.name, name.passes, static_cast<std::uint32_t>(name.passes.size()));
    }
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      const Use& use = uses_[i];
      const std::size_t common = use.reference.common;
      std::vector<std::uint64_t>& passes = operation.operands[i].passes;
      passes.assign(stack.passes.begin(), stack.passes.begin() + static_cast<std::ptrdiff_t>(common));
      passes.insert(passes.end(), use.reference.suffix.begin(), use.reference.suffix.end());
      // A use from outside more of the loops stands later in the program than any from further inside.
      operation.last_use[i] = use.last_site && stack.last_pass_below(common) &&
                              !program.used_by_suffix(use.reference.name, passes, use.reference.common);
    }
  }

 private:
  struct Use {
    Reference reference;
    bool last_site = false;  ///< no later place shares as many loops and names the same instance
  };

  static bool is_last_site(const Program& program, const Reference& reference, UseSite site) {
    if (reference.suffix.empty()) return program.info(reference.name).last_inner_use == site;
    return program.last_suffix_use({reference.name, reference.common, reference.suffix}) == site;
  }

  bool seed_by_index_ = false;
  std::vector<Use> uses_;
  std::vector<NameRef> spare_operands_;
};

/// A loop kept parsed: flat steps with jumps.
struct Step {
  enum class Kind : std::uint8_t { operation, loop_begin, loop_end };
  Kind kind;
  std::uint32_t target;  ///< operation: its number; loop_begin: the loop; loop_end: the first step of the body
};

class TextCursor final : public Trace::Cursor {
 public:
  TextCursor(const TextSource& text, const Program& program, CursorBudget budget, Statement& scratch)
      : program_(program), budget_(budget), reader_(text, cache_bytes(program, budget)), statement_(scratch) {
    if (!program_.blocks.empty()) reader_.seek(program_.blocks.front().begin);
  }

  const Operation* next() override {
    for (;;) {
      const Operation* const operation = parsed_loop_ != kNoLoop ? next_parsed() : next_from_text();
      if (operation != nullptr) return operation;
      if (block_ >= program_.blocks.size()) return nullptr;
    }
  }

 private:
  /// No more than the longest block: most programs are short.
  static std::size_t cache_bytes(const Program& program, CursorBudget budget) {
    std::uint64_t longest = 0;
    for (const Block& block : program.blocks) longest = std::max(longest, block.end - block.begin);
    return static_cast<std::size_t>(std::min<std::uint64_t>(longest, budget.cache_bytes));
  }

  /// Null: go on looking, or the end.
  const Operation* next_from_text() {
    while (block_ < program_.blocks.size()) {
      if (reader_.offset() >= program_.blocks[block_].end) {
        if (++block_ == program_.blocks.size()) {
          reader_.release();
        } else {
          reader_.seek(program_.blocks[block_].begin);
        }
        continue;
      }
      read_statement();
      switch (statement_.kind) {
        case StatementKind::operation:
          current_.resolve(program_, statement_, line_.offset, stack_.loops);
          current_.update(program_, stack_, put_index_);
          return &current_.operation;
        case StatementKind::repeat:
          if (enter_loop()) return nullptr;
          break;
        case StatementKind::end:
          end_pass();
          break;
        default:
          break;
      }
    }
    return nullptr;
  }

  void read_statement() {
    const bool found = reader_.next(line_);
    RVMA_ASSERT(found && !line_.too_long, kChanged);
    parse_statement(line_.text, statement_);
    RVMA_ASSERT(statement_.mistakes.empty(), kChanged);
  }

  /// At a `repeat`. True: the loop was taken into memory and is played from there.
  bool enter_loop() {
    const std::uint32_t number = program_.loop_beginning_at(line_.offset);
    const Loop& loop = program_.loops[number];
    if (loop.count == 0 || !loop.plays) {
      reader_.seek(loop.after_end);
      return false;
    }
    if (loop.count > 1 && loop.statements <= budget_.statements) {
      parse_loop(number);
      return true;
    }
    stack_.push(number, loop.count);
    return false;
  }

  /// At an `end` of a loop that is read from the text.
  void end_pass() {
    RVMA_ASSERT(!stack_.loops.empty(), kChanged);
    if (++stack_.passes.back() < stack_.counts.back()) return reader_.seek(program_.loops[stack_.loops.back()].body);
    stack_.pop();
  }

  /// Parses the loop's body once, with all loops in it. The reader stands behind its `repeat`.
  void parse_loop(std::uint32_t number) {
    parsed_loop_ = number;
    steps_.clear();
    operations_used_ = 0;
    next_step_ = 0;
    std::vector<std::uint32_t> open = stack_.loops;
    std::vector<std::uint32_t> bodies;
    const auto begin_loop = [&](std::uint32_t loop) {
      steps_.push_back({Step::Kind::loop_begin, loop});
      bodies.push_back(static_cast<std::uint32_t>(steps_.size()));
      open.push_back(loop);
    };
    begin_loop(number);
    while (!bodies.empty()) {
      read_statement();
      if (statement_.kind == StatementKind::operation) {
        if (operations_used_ == operations_.size()) operations_.emplace_back();
        operations_[operations_used_].resolve(program_, statement_, line_.offset, open);
        steps_.push_back({Step::Kind::operation, static_cast<std::uint32_t>(operations_used_++)});
      } else if (statement_.kind == StatementKind::repeat) {
        const std::uint32_t inner = program_.loop_beginning_at(line_.offset);
        if (program_.loops[inner].count == 0 || !program_.loops[inner].plays) {
          reader_.seek(program_.loops[inner].after_end);
        } else {
          begin_loop(inner);
        }
      } else if (statement_.kind == StatementKind::end) {
        steps_.push_back({Step::Kind::loop_end, bodies.back()});
        bodies.pop_back();
        open.pop_back();
      }
    }
  }

  /// Null: the loop has been played out.
  const Operation* next_parsed() {
    while (next_step_ < steps_.size()) {
      const Step step = steps_[next_step_++];
      switch (step.kind) {
        case Step::Kind::operation: {
          PlayedOperation& played = operations_[step.target];
          played.update(program_, stack_, put_index_);
          return &played.operation;
        }
        case Step::Kind::loop_begin:
          stack_.push(step.target, program_.loops[step.target].count);
          break;
        case Step::Kind::loop_end:
          if (++stack_.passes.back() < stack_.counts.back()) {
            next_step_ = step.target;
          } else {
            stack_.pop();
          }
          break;
      }
    }
    parsed_loop_ = kNoLoop;  // the reader stands behind the loop's `end` already
    return nullptr;
  }

  const Program& program_;
  CursorBudget budget_;
  LineReader reader_;
  std::size_t block_ = 0;
  Line line_;
  Statement& statement_;
  LoopStack stack_;
  std::uint64_t put_index_ = 0;
  PlayedOperation current_;  ///< of a line outside parsed loops

  std::uint32_t parsed_loop_ = kNoLoop;  ///< being played from memory
  std::vector<Step> steps_;
  std::size_t next_step_ = 0;
  std::vector<PlayedOperation> operations_;  ///< kept from loop to loop
  std::size_t operations_used_ = 0;
};

class EmptyCursor final : public Trace::Cursor {
 public:
  const Operation* next() override { return nullptr; }
};

}  // namespace

CursorBudget cursor_budget(std::uint32_t ranks) {
  // All ranks of a trace play at the same time.
  constexpr std::size_t kAllCaches = 16UL * 1024 * 1024;
  constexpr std::uint32_t kAllStatements = 64U * 1024;
  CursorBudget budget;
  budget.cache_bytes = std::clamp<std::size_t>(kAllCaches / ranks, 512, budget.cache_bytes);
  budget.statements = std::clamp<std::uint32_t>(kAllStatements / ranks, 16, budget.statements);
  return budget;
}

std::unique_ptr<Trace::Cursor> make_cursor(const TextSource& text, const Program& program, CursorBudget budget,
                                           Statement& scratch) {
  if (program.blocks.empty()) return std::make_unique<EmptyCursor>();
  return std::make_unique<TextCursor>(text, program, budget, scratch);
}

}  // namespace rvma::trace_detail
