#include "workload/import_goal.hpp"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cctype>
#include <limits>
#include <optional>
#include <utility>

#include "workload/import_lines.hpp"
#include "workload/trace_limits.hpp"

namespace rvma::import_detail {
namespace {

constexpr std::uint64_t kMaxTag = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMaxNs = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 1000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class GoalReader {
 public:
  GoalReader(const ImportSource& source, ImportGraph& graph, ImportLog& log)
      : lines_(source, 0, log), graph_(graph), log_(log) {}

  void read() {
    while (lines_.next()) {
      tokenize();
      at_ = 0;
      while (at_ < tokens_.size()) read_statement();
    }
    finish();
  }

 private:
  struct Reference {
    std::string label;
    ImportPlace place;
  };
  struct LabelledDependency {
    Reference after;
    Reference before;
    bool start_only;
  };

  // ----------------------------------------------------------------------------------------------------------- words

  /// Numbers, names, `-1` and single signs; a number ends where letters begin ("10b"). Comments are left out.
  void tokenize() {
    tokens_.clear();
    const std::string_view text = lines_.text();
    for (std::size_t at = 0; at < text.size();) {
      if (in_comment_) {
        const std::size_t close = text.find("*/", at);
        if (close == std::string_view::npos) return;
        in_comment_ = false;
        at = close + 2;
        continue;
      }
      const std::size_t begin = at;
      const char c = text[at];
      if (c == ' ' || c == '\t' || c == '\f' || c == '\v') {
        ++at;
        continue;
      }
      if (text.substr(at, 2) == "//") return;
      if (text.substr(at, 2) == "/*") {
        in_comment_ = true;
        comment_ = lines_.place(static_cast<std::uint32_t>(at + 1));
        at += 2;
        continue;
      }
      ++at;
      if (is_digit(c) || (c == '-' && at < text.size() && is_digit(text[at]))) {
        while (at < text.size() && is_digit(text[at])) ++at;
      } else if (is_letter(c)) {
        while (at < text.size() && (is_letter(text[at]) || is_digit(text[at]))) ++at;
      }
      tokens_.push_back({text.substr(begin, at - begin), static_cast<std::uint32_t>(begin + 1)});
    }
  }

  bool more() const { return at_ < tokens_.size(); }
  bool sees(std::string_view word) const { return more() && tokens_[at_].text == word; }
  bool takes(std::string_view word) {
    if (!sees(word)) return false;
    ++at_;
    return true;
  }
  /// The word at hand, or the end of the line in its place.
  Word here() const { return more() ? tokens_[at_] : Word{{}, static_cast<std::uint32_t>(lines_.text().size() + 1)}; }
  /// A mistake at the word at hand; the rest of the line is passed over.
  void unexpected(const std::string& expected) {
    lines_.fail(here(), more() ? "unexpected " + rvma::quoted(here().text) : "the line ends here",
                "expected " + expected);
    at_ = tokens_.size();
  }
  bool expects(std::string_view word) {
    if (takes(word)) return true;
    unexpected("'" + std::string(word) + "'");
    return false;
  }
  std::optional<std::uint64_t> number(std::uint64_t max, const char* what) {
    if (!more() || !(is_digit(tokens_[at_].text[0]) || tokens_[at_].text[0] == '-')) {
      unexpected(std::string(what) + ", an integer");
      return std::nullopt;
    }
    const auto value = lines_.integer(tokens_[at_], max, what);
    if (!value) at_ = tokens_.size();
    if (value) ++at_;
    return value;
  }

  // ------------------------------------------------------------------------------------------------------ statements

  void read_statement() {
    if (takes("num_ranks")) return read_num_ranks();
    if (takes("rank")) return read_rank();
    if (sees("}")) return close_rank();
    if (!in_block_) return unexpected("'num_ranks N' or 'rank R {'");
    Reference label;
    if (!sees("send") && !sees("recv") && !sees("calc")) {
      if (!is_letter(here().text[0])) return unexpected("a label, 'send', 'recv', 'calc' or '}'");
      label = {std::string(here().text), lines_.place(here())};
      ++at_;
      if (takes("requires")) return read_dependency(label, false);
      if (takes("irequires")) return read_dependency(label, true);
      if (!takes(":")) return unexpected("':', 'requires' or 'irequires'");
    }
    read_operation(label);
  }

  void end_statement() {
    if (more() && !sees("}")) unexpected("the end of the line");
  }

  void read_num_ranks() {
    const Word word = tokens_[at_ - 1];
    if (has_ranks_) lines_.fail(word, "a second 'num_ranks'", "expected it once, at the begin");
    const Word number_word = here();
    const auto ranks = number(trace_detail::kMaxRanks, "number of ranks");
    if (!ranks) return;
    if (*ranks == 0) lines_.fail(number_word, "'num_ranks 0'", "expected at least 1");
    if (!has_ranks_) graph_.ranks = static_cast<std::uint32_t>(*ranks);
    if (!has_ranks_) blocks_.assign(graph_.ranks, 0);
    has_ranks_ = true;
    header_ = lines_.place(word);
    end_statement();
  }

  void read_rank() {
    const Word word = tokens_[at_ - 1];
    if (in_block_) {
      lines_.fail(word, "the block of rank " + std::to_string(rank_) + " has not ended",
                  "expected '}' before; it began in line " + std::to_string(block_.line));
      close_block();
    }
    if (!has_ranks_) {
      lines_.fail(word, "'rank' before 'num_ranks N'", "expected it at the begin");
      has_ranks_ = true;  // said once
    }
    const Word number_word = here();
    const auto rank = number(trace_detail::kMaxRanks - 1, "rank");
    if (!rank) return;
    rank_ = static_cast<std::uint32_t>(*rank);
    if (graph_.ranks != 0 && rank_ >= graph_.ranks) {
      lines_.fail(number_word, "rank " + std::to_string(rank_) + " is out of range",
                  "expected 0.." + std::to_string(graph_.ranks - 1));
    } else if (graph_.ranks != 0) {
      std::uint32_t& line = blocks_[rank_];
      if (line != 0) {
        lines_.fail(number_word, "a second block of rank " + std::to_string(rank_),
                    "expected one; the first begins in line " + std::to_string(line));
      }
      line = lines_.number();
    }
    if (!expects("{")) return;
    in_block_ = true;
    block_ = lines_.place(word);
  }

  void close_rank() {
    if (!in_block_) return unexpected("'rank R {' before it");
    ++at_;
    close_block();
  }

  /// Labels are known only now: a dependency may stand before what it names.
  void close_block() {
    for (const LabelledDependency& dependency : dependencies_) {
      const auto after = find(dependency.after);
      const auto before = find(dependency.before);
      if (after && before) {
        graph_.dependencies.push_back({*before, *after, dependency.start_only, dependency.after.place});
      }
    }
    dependencies_.clear();
    labels_.clear();
    in_block_ = false;
  }

  std::optional<std::uint32_t> find(const Reference& reference) {
    const auto found = labels_.find(reference.label);
    if (found != labels_.end()) return found->second;
    std::string near;
    if (log_.errors().count() < ErrorList::kShown) {
      std::vector<std::string> known;
      for (const auto& [name, operation] : labels_) known.push_back(name);
      std::sort(known.begin(), known.end());
      near = nearest_name(reference.label, known);
    }
    log_.errors().add(graph_.position(reference.place),
                      "rank " + std::to_string(rank_) + " has no label " + rvma::quoted(reference.label),
                      near.empty() ? "expected the label of one of its operations" : "did you mean '" + near + "'?");
    return std::nullopt;
  }

  void read_dependency(Reference after, bool start_only) {
    if (!more() || !is_letter(here().text[0])) return unexpected("a label");
    Reference before{std::string(here().text), lines_.place(here())};
    ++at_;
    dependencies_.push_back({std::move(after), std::move(before), start_only});
    end_statement();
  }

  void read_operation(const Reference& label) {
    ImportOperation op;
    op.rank = rank_;
    op.place = lines_.place(here());
    bool good = false;
    if (takes("calc")) {
      good = read_calc(op);
    } else if (takes("send")) {
      op.kind = ImportKind::send;
      good = read_message(op);
    } else if (takes("recv")) {
      op.kind = ImportKind::receive;
      good = read_message(op);
    } else {
      unexpected("'send', 'recv' or 'calc'");
    }
    if (good) end_statement();
    if (graph_.operations.size() >= std::numeric_limits<std::uint32_t>::max() - 1) {
      return lines_.fail(op.place.column, "too many operations", "expected less than 2^32");
    }
    const std::uint32_t index = graph_.add(op);
    if (label.label.empty()) return;
    const auto [first, is_new] = labels_.try_emplace(label.label, index);
    if (is_new) return;
    log_.errors().add(
        graph_.position(label.place), "a second label " + rvma::quoted(label.label),
        "expected another name; line " + std::to_string(graph_.operations[first->second].place.line) + " has this one");
  }

  bool read_calc(ImportOperation& op) {
    const auto ns = number(kMaxNs, "time in ns");
    if (!ns) return false;
    op.time = Time::from_ns(static_cast<std::int64_t>(*ns));
    return !takes("cpu") || skip_unit("cpu");
  }

  bool read_message(ImportOperation& op) {
    const auto size = number(std::numeric_limits<std::uint64_t>::max(), "size in bytes");
    if (!size || !expects("b") || !expects(op.kind == ImportKind::send ? "to" : "from")) return false;
    op.size = *size;
    if (op.kind == ImportKind::receive && takes("-1")) {
      op.any_source = true;
    } else {
      const auto peer = number(trace_detail::kMaxRanks - 1, "rank");
      if (!peer) return false;
      op.peer = static_cast<std::uint32_t>(*peer);
    }
    if (takes("tag")) {
      if (op.kind == ImportKind::receive && takes("-1")) {
        op.any_tag = true;
      } else {
        const auto tag = number(kMaxTag, "tag");
        if (!tag) return false;
        op.tag = static_cast<std::uint32_t>(*tag);
      }
    }
    if (takes("cpu") && !skip_unit("cpu")) return false;
    return !takes("nic") || skip_unit("nic");
  }

  /// Every rank has one core and one NIC here.
  bool skip_unit(const char* unit) {
    const Word word = here();
    const auto value = number(std::numeric_limits<std::uint8_t>::max(), unit);
    if (value && *value != 0) {
      log_.lost(lines_.position(word.column), std::string(unit) + " " + std::to_string(*value) + ": a rank has one " +
                                                  unit + " here, and does one thing after another");
    }
    return value.has_value();
  }

  void finish() {
    if (in_comment_) {
      log_.errors().add(graph_.position(comment_), "the file ends within this comment", "expected '*/'");
    }
    if (in_block_) {
      log_.errors().add(graph_.position(block_), "the file ends within the block of rank " + std::to_string(rank_),
                        "expected '}'");
      close_block();
    }
    if (!has_ranks_) return lines_.fail(1, "the file has no 'num_ranks N'", "expected it at the begin");
    if (graph_.ranks == 0 || !log_.errors().empty()) return;
    const auto given = static_cast<std::uint64_t>(
        std::count_if(blocks_.begin(), blocks_.end(), [](std::uint32_t line) { return line != 0; }));
    if (given == graph_.ranks) return;
    const auto missing = std::find(blocks_.begin(), blocks_.end(), 0U) - blocks_.begin();
    log_.doubt(graph_.position(header_),
               "the file has blocks of " + std::to_string(given) + " ranks, but 'num_ranks " +
                   std::to_string(graph_.ranks) + "'",
               "expected a block of rank " + std::to_string(missing));
  }

  ImportLines lines_;
  ImportGraph& graph_;
  ImportLog& log_;
  std::vector<Word> tokens_;  ///< of the line
  std::size_t at_ = 0;        ///< the word at hand
  bool in_comment_ = false;
  ImportPlace comment_;
  bool has_ranks_ = false;
  ImportPlace header_;
  std::vector<std::uint32_t> blocks_;  ///< line of each rank's block, 0: none yet
  bool in_block_ = false;
  ImportPlace block_;
  std::uint32_t rank_ = 0;
  boost::unordered_flat_map<std::string, std::uint32_t> labels_;  ///< of the block
  std::vector<LabelledDependency> dependencies_;
};

}  // namespace

void read_goal(const std::vector<ImportSource>& sources, const ImportOptions& /*options*/, ImportGraph& graph,
               ImportLog& log) {
  graph.remarks.push_back("imported from a GOAL schedule");
  GoalReader(sources.front(), graph, log).read();
}

}  // namespace rvma::import_detail
