/// \file
/// The grammar of one line of a trace: words to a statement, with values exact and names still as written. The
/// operations, their arguments, defaults and flags are declared in one table here; parser, error texts and the
/// description of the format follow from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "workload/trace.hpp"
#include "workload/trace_limits.hpp"

namespace rvma::trace_detail {

/// A word of a line; lives as long as the line.
struct Token {
  std::string_view text;
  std::uint32_t column = 0;  ///< from 1, in bytes
};

struct Mistake {
  std::uint32_t column = 0;
  std::string what;
  std::string expected;
};

enum class StatementKind : std::uint8_t { blank, header, ranks, rank, repeat, end, operation, unknown };

/// What the first bare word behind an operation means.
enum class Operand : std::uint8_t { none, new_window, window, waited_names, duration, mark };

enum class Argument : std::uint8_t {
  mailbox,
  threshold,
  placement,
  key,
  size,
  align,
  seed,
  rank,
  offset,
  n,
  how,
  as,
  tag,
  memory,
};

/// One operation of the format.
struct OperationSyntax {
  const char* word;
  OperationKind kind;
  Operand operand;
  std::uint32_t required;  ///< bit per Argument
  std::uint32_t optional;
  bool window_flags;  ///< takes readable, catch_all, interrupt
};
const std::vector<OperationSyntax>& operation_table();

/// One line, parsed. Reused from line to line, so that no memory is allocated in the steady state.
struct Statement {
  StatementKind kind = StatementKind::blank;
  Token word;                ///< the first word
  std::uint64_t number = 0;  ///< ranks, rank, repeat
  Token number_token;
  bool restart = false;  ///< rank R restart
  const OperationSyntax* syntax = nullptr;
  Operation operation;       ///< all but names, passes and last uses
  Token defined;             ///< name that the operation defines; empty text: none
  std::vector<Token> names;  ///< names that it uses: the window, or what it waits for
  Token destination;         ///< the value of rank=
  std::vector<Mistake> mistakes;
  std::vector<Token> tokens;  ///< scratch
};

/// Parses one line. Mistakes are collected in `statement`; what could be understood is filled in all the same.
void parse_statement(std::string_view line, Statement& statement);

/// `[A-Za-z_][A-Za-z0-9_]*`
bool is_name(std::string_view text);

}  // namespace rvma::trace_detail
