#include "workload/trace_syntax.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <utility>

#include "base/value_text.hpp"
#include "nic/descriptor.hpp"

namespace rvma::trace_detail {
namespace {

constexpr std::uint64_t kMostAlignBytes = 1ULL << 30U;

constexpr std::uint32_t bit(Argument argument) { return 1U << static_cast<std::uint32_t>(argument); }

template <class... Arguments>
constexpr std::uint32_t bits(Arguments... arguments) {
  return (0U | ... | bit(arguments));
}

struct ArgumentSyntax {
  Argument argument;
  const char* word;
  const char* form;  ///< what stands behind `=`
};
constexpr std::array<ArgumentSyntax, 14> kArgumentTable{{
    {Argument::mailbox, "mailbox", "A"},
    {Argument::threshold, "threshold", "SIZE or Nop"},
    {Argument::placement, "placement", "steered or managed"},
    {Argument::key, "key", "K"},
    {Argument::size, "size", "SIZE"},
    {Argument::align, "align", "SIZE"},
    {Argument::seed, "seed", "N"},
    {Argument::rank, "rank", "R"},
    {Argument::offset, "offset", "SIZE"},
    {Argument::n, "n", "N"},
    {Argument::how, "how", "mwait, poll or interrupt"},
    {Argument::as, "as", "NAME"},
    {Argument::tag, "tag", "T"},
    {Argument::memory, "memory", "M"},
}};

struct FlagSyntax {
  const char* word;
  WindowFlag flag;
};
constexpr std::array<FlagSyntax, 3> kFlagTable{{
    {"readable", kWindowReadable},
    {"catch_all", kWindowCatchAll},
    {"interrupt", kWindowInterrupt},
}};

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// Words are parted by blanks; a `#` that begins one begins a comment.
void split(std::string_view line, std::vector<Token>& tokens) {
  tokens.clear();
  std::size_t at = 0;
  while (at < line.size()) {
    if (is_blank(line[at])) {
      ++at;
      continue;
    }
    if (line[at] == '#') return;
    const std::size_t begin = at;
    while (at < line.size() && !is_blank(line[at])) ++at;
    tokens.push_back({line.substr(begin, at - begin), static_cast<std::uint32_t>(begin + 1)});
  }
}

class LineParser {
 public:
  explicit LineParser(Statement& statement) : s_(statement) {}

  void parse() {
    if (s_.tokens.empty()) return;
    s_.word = s_.tokens.front();
    const std::string_view word = s_.word.text;
    for (const OperationSyntax& syntax : operation_table()) {
      if (word == syntax.word) return parse_operation(syntax);
    }
    if (word == "rank") return parse_rank();
    if (word == "repeat")
      return parse_number(StatementKind::repeat, std::numeric_limits<std::uint64_t>::max(), "count");
    if (word == "end") {
      s_.kind = StatementKind::end;
      return no_more_than(1);
    }
    if (word == "ranks") return parse_number(StatementKind::ranks, kMaxRanks, "number of ranks");
    if (word == "rvma-trace")
      return parse_number(StatementKind::header, std::numeric_limits<std::uint64_t>::max(), "version");
    s_.kind = StatementKind::unknown;
    mistake(s_.word, "unknown operation " + quoted(word), nearest(word, all_words(), "expected an operation"));
  }

 private:
  void mistake(const Token& token, std::string what, std::string expected) {
    s_.mistakes.push_back({token.column, std::move(what), std::move(expected)});
  }

  static std::string nearest(std::string_view word, const std::vector<std::string>& known, std::string otherwise) {
    const std::string found = nearest_name(word, known);
    return found.empty() ? std::move(otherwise) : "did you mean '" + found + "'?";
  }

  static std::vector<std::string> all_words() {
    std::vector<std::string> words{"rank", "ranks", "repeat", "end", "rvma-trace"};
    words.reserve(words.size() + operation_table().size());
    for (const OperationSyntax& syntax : operation_table()) words.emplace_back(syntax.word);
    return words;
  }

  void no_more_than(std::size_t count) {
    if (s_.tokens.size() <= count) return;
    const Token& extra = s_.tokens[count];
    mistake(extra, "unexpected " + quoted(extra.text) + " behind '" + std::string(s_.word.text) + "'",
            "expected the end of the line");
  }

  /// Place just behind the last word: where something is missing.
  Token after_last() const {
    const Token& last = s_.tokens.back();
    return {{}, static_cast<std::uint32_t>(last.column + last.text.size())};
  }

  void parse_number(StatementKind kind, std::uint64_t max, std::string_view what) {
    s_.kind = kind;
    if (s_.tokens.size() < 2) {
      s_.number_token = after_last();
      return mistake(s_.number_token, "missing " + std::string(what), "expected '" + std::string(s_.word.text) + " N'");
    }
    s_.number_token = s_.tokens[1];
    take_integer(s_.tokens[1], max, what, s_.number);
    no_more_than(2);
  }

  void parse_rank() {
    s_.kind = StatementKind::rank;
    if (s_.tokens.size() < 2) {
      s_.number_token = after_last();
      return mistake(s_.number_token, "missing rank", "expected 'rank R'");
    }
    s_.number_token = s_.tokens[1];
    take_integer(s_.tokens[1], std::numeric_limits<std::uint32_t>::max(), "rank", s_.number);
    if (s_.tokens.size() > 2 && s_.tokens[2].text == "restart") {
      s_.restart = true;
      return no_more_than(3);
    }
    no_more_than(2);
  }

  void parse_operation(const OperationSyntax& syntax) {
    s_.kind = StatementKind::operation;
    s_.syntax = &syntax;
    s_.operation.kind = syntax.kind;
    // 1. The operand stands first (names to wait for may stand anywhere behind the operation).
    std::size_t next = 1;
    if (syntax.operand != Operand::none && syntax.operand != Operand::waited_names) next = parse_operand(syntax);
    // 2. Arguments and flags in any order.
    std::uint32_t given = 0;
    for (; next < s_.tokens.size(); ++next) {
      const Token& token = s_.tokens[next];
      if (const std::size_t equals = token.text.find('='); equals != std::string_view::npos) {
        parse_argument(syntax, token, equals, given);
      } else if (syntax.operand == Operand::waited_names) {
        s_.names.push_back(token);
      } else {
        parse_flag(syntax, token);
      }
    }
    // 3. What must be there.
    if (const std::uint32_t missing = syntax.required & ~given; missing != 0) report_missing(missing);
    if (syntax.operand == Operand::waited_names) check_waited_names();
    if (syntax.kind == OperationKind::post_one_time_buffer && (given & bit(Argument::threshold)) == 0) {
      s_.operation.threshold = s_.operation.size;
    }
  }

  std::size_t parse_operand(const OperationSyntax& syntax) {
    if (s_.tokens.size() < 2 || s_.tokens[1].text.find('=') != std::string_view::npos) {
      mistake(s_.tokens.size() < 2 ? after_last() : s_.tokens[1], "missing " + operand_name(syntax.operand),
              "expected '" + std::string(syntax.word) + " " + operand_form(syntax.operand) + "'");
      return 1;
    }
    const Token& token = s_.tokens[1];
    switch (syntax.operand) {
      case Operand::new_window:
        take_new_name(token);
        break;
      case Operand::window:
        s_.names.push_back(token);
        break;
      case Operand::duration:
        take(token, parse_time(token.text), s_.operation.duration);
        break;
      case Operand::mark:
        if (token.text == "end") {
          s_.operation.kind = OperationKind::mark_end;
        } else if (token.text != "begin") {
          mistake(token, "unknown mark " + quoted(token.text), "expected 'begin' or 'end'");
        }
        break;
      case Operand::none:
      case Operand::waited_names:
        break;
    }
    return 2;
  }

  static std::string operand_name(Operand operand) {
    if (operand == Operand::duration) return "time";
    if (operand == Operand::mark) return "'begin' or 'end'";
    return "window name";
  }
  static std::string operand_form(Operand operand) {
    if (operand == Operand::duration) return "T";
    if (operand == Operand::mark) return "begin";
    return "W";
  }

  void parse_flag(const OperationSyntax& syntax, const Token& token) {
    if (!syntax.window_flags) {
      return mistake(token, "unexpected " + quoted(token.text) + " behind '" + syntax.word + "'",
                     syntax.required + syntax.optional == 0 ? "expected the end of the line" : "expected key=value");
    }
    for (const FlagSyntax& flag : kFlagTable) {
      if (token.text != flag.word) continue;
      if ((s_.operation.window_flags & flag.flag) != 0) {
        mistake(token, "flag " + quoted(token.text) + " is given twice", "expected it once");
      }
      s_.operation.window_flags = static_cast<std::uint8_t>(s_.operation.window_flags | flag.flag);
      return;
    }
    std::vector<std::string> known;
    known.reserve(std::size(kFlagTable) + std::size(kArgumentTable));
    for (const FlagSyntax& flag : kFlagTable) known.emplace_back(flag.word);
    for (const ArgumentSyntax& argument : kArgumentTable) {
      if (((syntax.required | syntax.optional) & bit(argument.argument)) != 0)
        known.push_back(std::string(argument.word) + "=");
    }
    mistake(token, "unknown flag " + quoted(token.text),
            nearest(token.text, known, "expected readable, catch_all, interrupt or key=value"));
  }

  void parse_argument(const OperationSyntax& syntax, const Token& token, std::size_t equals, std::uint32_t& given) {
    const std::string_view key = token.text.substr(0, equals);
    const Token value{token.text.substr(equals + 1), static_cast<std::uint32_t>(token.column + equals + 1)};
    const std::uint32_t allowed = syntax.required | syntax.optional;
    const auto* const found = std::find_if(kArgumentTable.begin(), kArgumentTable.end(), [&](const auto& argument) {
      return (allowed & bit(argument.argument)) != 0 && key == argument.word;
    });
    if (found == kArgumentTable.end()) return report_unknown_argument(syntax, token, key);
    if ((given & bit(found->argument)) != 0) {
      return mistake(token, "argument " + quoted(key) + " is given twice", "expected it once");
    }
    given |= bit(found->argument);
    if (value.text.empty()) {
      return mistake(value, "argument " + quoted(key) + " has no value",
                     "expected " + std::string(found->word) + "=" + found->form);
    }
    argument_ = found->word;
    take_argument(found->argument, value);
    argument_ = nullptr;
  }

  void report_unknown_argument(const OperationSyntax& syntax, const Token& token, std::string_view key) {
    std::vector<std::string> known;
    std::string list;
    for (const ArgumentSyntax& argument : kArgumentTable) {
      if (((syntax.required | syntax.optional) & bit(argument.argument)) == 0) continue;
      known.emplace_back(argument.word);
      list += (list.empty() ? "" : ", ") + known.back();
    }
    mistake(token, "unknown argument " + quoted(key) + " of '" + syntax.word + "'",
            nearest(key, known, list.empty() ? "it takes none" : "expected one of " + list));
  }

  void report_missing(std::uint32_t missing) {
    std::string list;
    for (const ArgumentSyntax& argument : kArgumentTable) {
      if ((missing & bit(argument.argument)) == 0) continue;
      list += (list.empty() ? "" : " ") + std::string(argument.word) + "=" + argument.form;
    }
    mistake(s_.word, "missing argument of '" + std::string(s_.word.text) + "'", "expected " + list);
  }

  void check_waited_names() {
    if (s_.names.empty()) {
      return mistake(after_last(), "nothing to wait for", "expected 'wait NAME...' or 'wait all'");
    }
    const auto all = std::find_if(s_.names.begin(), s_.names.end(), [](const Token& t) { return t.text == "all"; });
    if (all == s_.names.end()) return;
    if (s_.names.size() > 1) {
      mistake(*all, "'all' stands with other names", "expected 'wait all' alone");
    }
    s_.operation.kind = OperationKind::wait_all;
    s_.names.clear();
  }

  void take_argument(Argument argument, const Token& value) {
    constexpr std::uint64_t kMax64 = std::numeric_limits<std::uint64_t>::max();
    Operation& op = s_.operation;
    switch (argument) {
      case Argument::mailbox: {
        std::uint64_t mailbox = 0;
        if (take_integer(value, kMax64, "mailbox", mailbox)) op.mailbox = Mailbox{mailbox};
        return;
      }
      case Argument::threshold:
        return take_threshold(value);
      case Argument::placement:
        return take(value, ValueText<Placement>::parse(value.text), op.placement);
      case Argument::key: {
        std::uint64_t key = 0;
        if (take_integer(value, std::numeric_limits<std::uint32_t>::max(), "key", key))
          op.key = static_cast<std::uint32_t>(key);
        return;
      }
      case Argument::size:
        return take_size(value);
      case Argument::align:
        return take_align(value);
      case Argument::seed:
        op.has_seed = take_integer(value, kMax64, "seed", op.seed);
        return;
      case Argument::rank: {
        std::uint64_t rank = 0;
        if (!take_integer(value, std::numeric_limits<std::uint32_t>::max(), "rank", rank)) return;
        op.rank = RankId{static_cast<std::uint32_t>(rank)};
        s_.destination = value;
        return;
      }
      case Argument::offset: {
        Bytes offset;
        take(value, parse_size(value.text), offset);
        op.offset = offset.count();
        return;
      }
      case Argument::n:
        take_integer(value, kMax64, "count", op.n);
        return;
      case Argument::memory:
        if (take_integer(value, kMax64, "memory", op.n) && op.n == 0) {
          mistake(value, "memory is 0", "expected a label from 1 on");
        }
        return;
      case Argument::how:
        return take(value, ValueText<WaitHow>::parse(value.text), op.how);
      case Argument::as:
        return take_new_name(value);
      case Argument::tag: {
        std::uint64_t tag = 0;
        if (take_integer(value, std::numeric_limits<std::uint32_t>::max(), "tag", tag))
          op.tag = static_cast<std::uint32_t>(tag);
        return;
      }
    }
  }

  /// Takes a parsed value, or records why there is none.
  template <class T>
  void take(const Token& token, const ValueResult<T>& value, T& to) {
    if (value) {
      to = *value;
    } else {
      mistake(token, named(value.error().what), value.error().expected);
    }
  }

  /// A mistake in a value names the argument that it belongs to.
  std::string named(const std::string& what) const {
    return argument_ == nullptr ? what : std::string(argument_) + ": " + what;
  }

  bool take_integer(const Token& token, std::uint64_t max, std::string_view what, std::uint64_t& to) {
    const ValueResult<std::uint64_t> value = parse_integer(token.text, max, what);
    take(token, value, to);
    return value.has_value();
  }

  void take_threshold(const Token& value) {
    Operation& op = s_.operation;
    constexpr std::string_view kOps = "op";
    std::string_view text = value.text;
    if (text.size() > kOps.size() && text.substr(text.size() - kOps.size()) == kOps) {
      text.remove_suffix(kOps.size());
      op.threshold_type = ThresholdType::ops;
      if (!take_integer({text, value.column}, std::numeric_limits<std::uint64_t>::max(), "threshold", op.threshold))
        return;
    } else {
      const ValueResult<Bytes> size = parse_size(text);
      if (!size)
        return mistake(value, named(size.error().what), "expected a size such as 4KiB, or a count such as 5op");
      op.threshold = size->count();
    }
    if (op.threshold == 0) mistake(value, "the threshold is 0", "expected at least 1 byte or 1op");
  }

  void take_size(const Token& value) {
    const ValueResult<Bytes> size = parse_size(value.text);
    if (!size) return mistake(value, named(size.error().what), size.error().expected);
    s_.operation.size = size->count();
    if (kMostLocalBytes < s_.operation.size) {
      return mistake(value, "size " + quoted(value.text) + " is more than a process's memory",
                     "expected at most " + to_string(Bytes{kMostLocalBytes}));
    }
    const OperationKind kind = s_.operation.kind;
    const bool is_buffer = kind == OperationKind::post_buffer || kind == OperationKind::post_one_time_buffer;
    if (is_buffer && s_.operation.size == 0) mistake(value, "the buffer's size is 0", "expected at least 1 byte");
  }

  void take_align(const Token& value) {
    const ValueResult<Bytes> align = parse_size(value.text);
    if (!align) return mistake(value, named(align.error().what), align.error().expected);
    const std::uint64_t bytes = align->count();
    if (bytes == 0 || (bytes & (bytes - 1)) != 0) {
      return mistake(value, "alignment " + quoted(value.text) + " is no power of two",
                     "expected a power of two such as 64B or 4KiB");
    }
    if (bytes > kMostAlignBytes) {
      return mistake(value, "alignment " + quoted(value.text) + " is too large",
                     "expected at most " + to_string(Bytes{kMostAlignBytes}));
    }
    s_.operation.align = bytes;
  }

  void take_new_name(const Token& token) {
    if (token.text == "all") {
      return mistake(token, "the name 'all' is reserved", "expected another name");
    }
    if (!is_name(token.text)) {
      return mistake(token, "bad name " + quoted(token.text), "expected letters, digits and _, not a digit first");
    }
    s_.defined = token;
  }

  Statement& s_;
  const char* argument_ = nullptr;  ///< whose value is being read
};

/// Back to the defaults of the format, keeping allocated memory.
void reset(Operation& op) {
  std::vector<NameRef> operands = std::move(op.operands);
  std::vector<std::uint64_t> passes = std::move(op.name.passes);
  std::vector<bool> last_use = std::move(op.last_use);
  op = Operation{};
  op.operands = std::move(operands);
  op.name.passes = std::move(passes);
  op.last_use = std::move(last_use);
}

}  // namespace

const std::vector<OperationSyntax>& operation_table() {
  using A = Argument;
  using K = OperationKind;
  static const std::vector<OperationSyntax> table{
      {"put", K::put, Operand::none, bits(A::rank, A::mailbox, A::size), bits(A::offset, A::key, A::as, A::seed),
       false},
      {"wait", K::wait, Operand::waited_names, 0, bits(A::how), false},
      {"post_buffer", K::post_buffer, Operand::window, bits(A::size), bits(A::as, A::align, A::seed, A::memory), false},
      {"barrier", K::barrier, Operand::none, 0, 0, false},
      {"compute", K::compute, Operand::duration, 0, 0, false},
      {"get", K::get, Operand::none, bits(A::rank, A::mailbox, A::size), bits(A::offset, A::key, A::as), false},
      {"init_window", K::init_window, Operand::new_window, bits(A::mailbox, A::threshold), bits(A::placement, A::key),
       true},
      {"post_one_time_buffer", K::post_one_time_buffer, Operand::none, bits(A::mailbox, A::size),
       bits(A::threshold, A::key, A::as), false},
      {"inc_epoch", K::inc_epoch, Operand::window, 0, 0, false},
      {"get_epoch", K::get_epoch, Operand::window, 0, 0, false},
      {"get_buf_ptrs", K::get_buf_ptrs, Operand::window, bits(A::n), 0, false},
      {"rewind", K::rewind, Operand::window, bits(A::n), 0, false},
      {"close_window", K::close_window, Operand::window, 0, 0, false},
      {"mark", K::mark_begin, Operand::mark, 0, 0, false},
      {"send", K::send, Operand::none, bits(A::rank, A::size), bits(A::tag, A::as, A::seed), false},
      {"recv", K::recv, Operand::none, bits(A::rank, A::size), bits(A::tag, A::as), false},
  };
  return table;
}

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || is_digit(c); });
}

void parse_statement(std::string_view line, Statement& statement) {
  statement.kind = StatementKind::blank;
  statement.word = {};
  statement.number = 0;
  statement.number_token = {};
  statement.restart = false;
  statement.syntax = nullptr;
  reset(statement.operation);
  statement.defined = {};
  statement.names.clear();
  statement.destination = {};
  statement.mistakes.clear();
  split(line, statement.tokens);
  LineParser(statement).parse();
}

}  // namespace rvma::trace_detail
