#include "base/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_stack.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <set>
#include <system_error>
#include <unordered_map>

namespace rvma {
namespace {

namespace json = boost::json;

/// Deeper than any section; keeps nested junk off the stack.
constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20U;

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string_view last_component(std::string_view path) { return path.substr(path.rfind('.') + 1); }

/// The keys by path, and which sections hold what.
class KeyTree {
 public:
  explicit KeyTree(const std::vector<KeyRef>& keys) {
    for (const KeyRef& ref : keys) {
      keys_.emplace(ref.path, ref.key);
      add_to_sections(ref.path);
    }
  }

  KeyBase* key(const std::string& path) const {
    const auto found = keys_.find(path);
    return found == keys_.end() ? nullptr : found->second;
  }
  /// Names of what a section holds, in the order of declaration; null if `path` is no section. The root is "".
  const std::vector<std::string>* section(const std::string& path) const {
    const auto found = sections_.find(path);
    return found == sections_.end() ? nullptr : &found->second;
  }
  /// Full path of a key with the last name of `path` in some other section, or empty.
  std::string elsewhere(std::string_view path) const {
    for (const auto& [known, key] : keys_) {
      if (last_component(known) == last_component(path)) return known;
    }
    return {};
  }
  std::vector<std::string> all_paths() const {
    std::vector<std::string> paths;
    for (const auto& entry : keys_) paths.push_back(entry.first);
    for (const auto& entry : sections_) {
      if (!entry.first.empty()) paths.push_back(entry.first);
    }
    return paths;
  }

 private:
  void add_to_sections(std::string_view path) {
    std::size_t begin = 0;
    while (begin <= path.size()) {
      const std::size_t end = std::min(path.find('.', begin), path.size());
      std::vector<std::string>& names = sections_[std::string{path.substr(0, begin == 0 ? 0 : begin - 1)}];
      const std::string name{path.substr(begin, end - begin)};
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      begin = end + 1;
    }
  }

  std::map<std::string, KeyBase*> keys_;
  std::map<std::string, std::vector<std::string>> sections_;
};

/// Line and column of any byte of a text.
class LineIndex {
 public:
  explicit LineIndex(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') starts_.push_back(i + 1);
    }
  }
  Position position(const std::string& source, std::size_t offset) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
    return {source, static_cast<std::uint64_t>(after - starts_.begin()), offset - *(after - 1) + 1};
  }

 private:
  std::vector<std::size_t> starts_{0};
};

/// Follows the parser through its text, token by token, to know where each one stands: the parser itself hands out
/// unescaped copies. Relies on the parser having accepted the token.
class TokenCursor {
 public:
  explicit TokenCursor(std::string_view text) : text_(text) {}

  struct Token {
    std::size_t offset;
    std::string_view text;
  };

  Token next() {
    skip_between_tokens();
    const std::size_t begin = at_;
    if (at_ < text_.size()) {
      if (text_[at_] == '"') {
        skip_string();
      } else if (is_number(text_[at_])) {
        // Numbers end where their characters do: what follows at once is the parser's to refuse.
        while (at_ < text_.size() && (is_number(text_[at_]) || text_[at_] == 'e' || text_[at_] == 'E')) ++at_;
      } else if (is_letter(text_[at_])) {
        while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
      } else {
        ++at_;
      }
    }
    return {begin, text_.substr(begin, at_ - begin)};
  }
  /// Where the next token begins, or would.
  std::size_t next_offset() {
    skip_between_tokens();
    return at_;
  }

 private:
  static bool is_number(char c) { return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'; }
  static bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
  void skip_string() {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_ + 1, text_.size());
  }
  void skip_past(std::string_view mark) {
    const std::size_t found = text_.find(mark, at_ + 2);
    at_ = found == std::string_view::npos ? text_.size() : found + mark.size();
  }
  void skip_between_tokens() {
    static constexpr std::string_view kBlanks = " \t\r\n,:";
    while (at_ < text_.size()) {
      if (kBlanks.find(text_[at_]) != std::string_view::npos) {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        skip_past("\n");
      } else if (text_.substr(at_, 2) == "/*") {
        skip_past("*/");
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Takes the events of Boost.JSON's parser and sets keys. Never stops the parser: one run reports every mistake.
class Loader {
 public:
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  Loader(std::string_view text, const std::string& source, const std::vector<KeyRef>& keys, ErrorList& errors)
      : tree_(keys), lines_(text), cursor_(text), source_(source), errors_(errors) {}

  void fail(std::size_t offset, std::string what, std::string expected) {
    errors_.add(lines_.position(source_, offset), std::move(what), std::move(expected));
  }

  std::size_t next_offset() { return cursor_.next_offset(); }

  // Events of the parser. The parts of a string are gathered; numbers are taken from the text, digit by digit.
  bool on_document_begin(json::error_code& /*ec*/) { return true; }
  bool on_document_end(json::error_code& /*ec*/) { return true; }
  bool on_object_begin(json::error_code& /*ec*/) {
    begin_object(cursor_.next().offset);
    return true;
  }
  bool on_object_end(std::size_t n, json::error_code& /*ec*/) {
    cursor_.next();
    end_object(n);
    return true;
  }
  bool on_array_begin(json::error_code& /*ec*/) {
    begin_list(cursor_.next().offset);
    return true;
  }
  bool on_array_end(std::size_t n, json::error_code& /*ec*/) {
    cursor_.next();
    end_list(n);
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t /*n*/, json::error_code& /*ec*/) { return gather(part); }
  bool on_key(json::string_view part, std::size_t /*n*/, json::error_code& /*ec*/) {
    gather(part);
    name(cursor_.next().offset, std::exchange(gathered_, {}));
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t /*n*/, json::error_code& /*ec*/) { return gather(part); }
  bool on_string(json::string_view part, std::size_t /*n*/, json::error_code& /*ec*/) {
    gather(part);
    text_value(cursor_.next().offset, std::exchange(gathered_, {}));
    return true;
  }
  bool on_number_part(json::string_view /*part*/, json::error_code& /*ec*/) { return true; }
  bool on_int64(std::int64_t /*value*/, json::string_view /*part*/, json::error_code& /*ec*/) { return on_number(); }
  bool on_uint64(std::uint64_t /*value*/, json::string_view /*part*/, json::error_code& /*ec*/) { return on_number(); }
  bool on_double(double /*value*/, json::string_view /*part*/, json::error_code& /*ec*/) { return on_number(); }
  bool on_bool(bool value, json::error_code& /*ec*/) {
    json_value(cursor_.next().offset, value);
    return true;
  }
  bool on_null(json::error_code& /*ec*/) {
    json_value(cursor_.next().offset, nullptr);
    return true;
  }
  bool on_comment_part(json::string_view /*part*/, json::error_code& /*ec*/) { return true; }
  bool on_comment(json::string_view /*part*/, json::error_code& /*ec*/) { return true; }

 private:
  enum class Target { root, key, section, nothing };

  bool gather(json::string_view part) {
    gathered_.append(part.data(), part.size());
    return true;
  }
  bool on_number() {
    const TokenCursor::Token token = cursor_.next();
    text_value(token.offset, std::string{token.text});
    return true;
  }
  bool skipping() const { return skipped_depth_ != 0; }
  bool in_list() const { return !list_levels_.empty(); }

  /// A name within an object: decides what the value after it is for.
  void name(std::size_t offset, std::string name) {
    if (skipping()) return;
    if (in_list()) {
      if (!list_levels_.back().names.insert(name).second) {
        fail(offset, "name " + quoted(name) + " is given twice in one entry of " + path_, "");
      }
      list_levels_.back().name = name;
      list_.push_key(name);
      return;
    }
    path_ = open_sections_.back().empty() ? name : open_sections_.back() + "." + name;
    key_ = tree_.key(path_);
    // A name with a dot in it is not a path, whatever it spells.
    const bool known = name.find('.') == std::string::npos && (key_ != nullptr || tree_.section(path_) != nullptr);
    target_ = Target::nothing;
    if (!known) {
      fail(offset, "unknown key " + quoted(path_), hint_for(name));
      return;
    }
    const auto [first, fresh] = seen_.emplace(path_, offset);
    if (!fresh) {
      fail(offset, "key " + quoted(path_) + " is given twice",
           "first on line " + std::to_string(lines_.position(source_, first->second).line));
      return;
    }
    target_ = key_ != nullptr ? Target::key : Target::section;
  }

  std::string hint_for(const std::string& name) const {
    if (tree_.key(name) != nullptr && name.find('.') != std::string::npos) {
      return "expected a section inside a section for each dot";
    }
    const std::string& section = open_sections_.back();
    const std::vector<std::string>& known = *tree_.section(section);
    std::string nearest = nearest_name(name, known);
    if (!nearest.empty()) {
      return "did you mean " + quoted(section.empty() ? nearest : section + "." + nearest) + "?";
    }
    nearest = tree_.elsewhere(name);
    if (!nearest.empty()) return "did you mean " + quoted(nearest) + "?";
    return "expected one of " + joined(known);
  }

  void begin_object(std::size_t offset) {
    if (skipping()) {
      ++skipped_depth_;
    } else if (in_list()) {
      open_level(offset);
    } else if (target_ == Target::root) {
      open_sections_.emplace_back();
      target_ = Target::nothing;
    } else if (target_ == Target::section) {
      open_sections_.push_back(path_);
    } else {
      if (target_ == Target::key) fail_value(offset, *key_->set(json::value(json::object())));
      ++skipped_depth_;
    }
  }
  void end_object(std::size_t n) {
    if (skipping()) {
      --skipped_depth_;
    } else if (in_list()) {
      list_levels_.pop_back();
      list_.push_object(n);
    } else {
      open_sections_.pop_back();
    }
  }

  void begin_list(std::size_t offset) {
    if (skipping()) {
      ++skipped_depth_;
    } else if (in_list()) {
      open_level(offset);
    } else if (target_ == Target::key) {
      list_offset_ = offset;
      list_places_.clear();
      list_.reset();
      list_levels_.emplace_back();
    } else {
      fail_no_section(offset);
      ++skipped_depth_;
    }
  }
  void end_list(std::size_t n) {
    if (skipping()) {
      --skipped_depth_;
      return;
    }
    list_levels_.pop_back();
    list_.push_array(n);
    if (in_list()) return;
    const std::optional<ValueError> error = key_->set(list_.release());
    if (!error) return;
    const auto place = list_places_.find(error->within);
    fail_value(place == list_places_.end() ? list_offset_ : place->second, *error);
  }
  /// Notes where a value within a list stands.
  void note_place(std::size_t offset) {
    ListLevel& level = list_levels_.back();
    list_places_[level.path + "/" + (level.name.empty() ? std::to_string(level.index++) : level.name)] = offset;
  }
  void open_level(std::size_t offset) {
    const ListLevel& level = list_levels_.back();
    ListLevel inner;
    inner.path = level.path + "/" + (level.name.empty() ? std::to_string(level.index) : level.name);
    note_place(offset);
    list_levels_.push_back(std::move(inner));
  }

  void text_value(std::size_t offset, const std::string& text) {
    if (skipping()) return;
    if (in_list()) {
      note_place(offset);
      list_.push_string(text);
    } else if (target_ == Target::key) {
      set(offset, key_->set_text(text));
    } else {
      fail_no_section(offset);
    }
  }
  template <class T>
  void json_value(std::size_t offset, T value) {
    if (skipping()) return;
    if (in_list()) {
      note_place(offset);
      if constexpr (std::is_same_v<T, bool>) {
        list_.push_bool(value);
      } else {
        list_.push_null();
      }
    } else if (target_ == Target::key) {
      set(offset, key_->set(json::value(value)));
    } else {
      fail_no_section(offset);
    }
  }

  void set(std::size_t offset, const std::optional<ValueError>& error) {
    if (error) fail_value(offset, *error);
  }
  void fail_value(std::size_t offset, const ValueError& error) {
    fail(offset, path_ + ": " + error.what, error.expected);
  }
  /// A value stands where a section belongs.
  void fail_no_section(std::size_t offset) {
    if (target_ == Target::root) {
      fail(offset, "the configuration is not an object", "expected { } with sections inside");
    } else if (target_ == Target::section) {
      fail(offset, path_ + ": a value stands where a section belongs",
           "expected { } with " + joined(*tree_.section(path_)) + " inside");
    }
  }

  KeyTree tree_;
  LineIndex lines_;
  TokenCursor cursor_;
  const std::string& source_;
  ErrorList& errors_;

  std::string gathered_;                    ///< of a string or name that arrives in parts
  std::vector<std::string> open_sections_;  ///< paths; the root's is empty
  std::unordered_map<std::string, std::size_t> seen_;
  std::size_t skipped_depth_ = 0;  ///< open brackets below a value that is not read, after its error

  Target target_ = Target::root;  ///< of the next value
  std::string path_;
  KeyBase* key_ = nullptr;

  /// An open list or object within a list value.
  struct ListLevel {
    std::string path;             ///< JSON pointer
    std::set<std::string> names;  ///< seen so far, in an object
    std::string name;             ///< of the value that comes, in an object
    std::size_t index = 0;        ///< of the value that comes, in a list
  };
  json::value_stack list_;  ///< the list value being built
  std::vector<ListLevel> list_levels_;
  std::map<std::string, std::size_t> list_places_;  ///< offset of each value in it, by JSON pointer
  std::size_t list_offset_ = 0;
};

/// What is wrong with a file as a whole, or nothing.
std::optional<ValueError> whole_file_fault(std::string_view text) {
  static constexpr std::string_view kLfs = "version https://git-lfs.github.com/spec/";
  static constexpr std::string_view kExpected = "expected JSON, {} at least";
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return ValueError{"the file is empty", std::string{kExpected}};
  }
  if (text.substr(0, kLfs.size()) == kLfs) {
    return ValueError{"the file is a Git LFS pointer, not its content", "fetch it with: git lfs pull"};
  }
  static constexpr std::array<std::string_view, 2> kCompressed{"\x1f\x8b", "\x28\xb5\x2f\xfd"};
  for (const std::string_view magic : kCompressed) {
    if (text.substr(0, magic.size()) == magic) return ValueError{"the file is compressed", std::string{kExpected}};
  }
  if (text.find('\0') != std::string_view::npos) return ValueError{"the file is binary", std::string{kExpected}};
  return std::nullopt;
}

ValueError syntax_fault(const json::error_code& code, std::string_view rest) {
  if (code == json::error::incomplete) {
    return {"the JSON text ends too early", "expected the end of an open value, list or section"};
  }
  if (code == json::error::extra_data) {
    return {"text after the end of the configuration: " + quoted(rest.substr(0, rest.find('\n'))), ""};
  }
  if (code == json::error::too_deep) {
    return {"sections and lists are nested too deep", "expected at most " + std::to_string(kMaxDepth) + " levels"};
  }
  std::string what = "malformed JSON";
  if (code != json::error::syntax) what += " (" + code.message() + ")";
  if (rest.empty()) return {what + " at the end of the text", ""};
  return {what + " at " + quoted(rest.substr(0, rest.find_first_of("\r\n"))), ""};
}

/// The whole of a file, or what kept it from being read.
boost::system::result<std::string, ValueError> read_file(const std::string& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    return ValueError{"is a directory", "expected a configuration file"};
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return ValueError{"the file cannot be read: " + std::generic_category().message(errno), ""};
  }
  // In pieces and with an end: a pipe has no size, and a device no end.
  std::string text;
  std::array<char, 65536> piece{};
  while (file && text.size() <= kMaxFileBytes) {
    file.read(piece.data(), piece.size());
    text.append(piece.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) return ValueError{"the file cannot be read to its end", ""};
  if (text.size() > kMaxFileBytes) {
    return ValueError{"the file is too large for a configuration",
                      "expected at most " + to_string(Bytes{kMaxFileBytes})};
  }
  return text;
}

void print_pretty(std::ostream& out, const json::value& value, std::size_t indent) {
  if (!value.is_object() || value.get_object().empty()) {
    out << json::serialize(value);
    return;
  }
  out << "{\n";
  const std::string margin(indent + 2, ' ');
  const char* separator = "";
  for (const auto& entry : value.get_object()) {
    out << separator << margin << json::serialize(json::value(entry.key())) << ": ";
    print_pretty(out, entry.value(), indent + 2);
    separator = ",\n";
  }
  out << '\n' << std::string(indent, ' ') << '}';
}

/// `|` would end a cell of the table.
std::string markdown_cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

std::string markdown_code(const std::string& text) { return text.empty() ? "" : "`" + markdown_cell(text) + "`"; }

}  // namespace

void load_config_file(const std::string& path, const std::vector<KeyRef>& keys, ErrorList& errors) {
  const auto text = read_file(path);
  if (!text) {
    errors.add(Position{path, 1, 1}, text.error().what, text.error().expected);
    return;
  }
  load_config_text(*text, path, keys, errors);
}

void load_config_text(std::string_view text, const std::string& source, const std::vector<KeyRef>& keys,
                      ErrorList& errors) {
  static constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  if (const std::optional<ValueError> fault = whole_file_fault(text)) {
    errors.add(Position{source, 1, 1}, fault->what, fault->expected);
    return;
  }
  json::parse_options options;
  options.max_depth = kMaxDepth;
  options.allow_comments = true;
  options.allow_trailing_commas = true;
  json::basic_parser<Loader> parser(options, text, source, keys, errors);
  json::error_code code;
  std::size_t consumed = parser.write_some(false, text.data(), text.size(), code);
  // Boost 1.81 loses the place of a fault in a comment, or reports one far outside the text.
  if (code) {
    const std::size_t next = parser.handler().next_offset();
    if (consumed > text.size() || text.substr(next, 1) == "/") consumed = next;
  }
  if (!code && consumed < text.size()) code = json::error::extra_data;
  if (code) {
    ValueError fault = syntax_fault(code, text.substr(consumed));
    parser.handler().fail(consumed, std::move(fault.what), std::move(fault.expected));
  }
}

void apply_set(std::string_view assignment, const std::vector<KeyRef>& keys, ErrorList& errors) {
  const std::size_t equals = assignment.find('=');
  const std::string path{assignment.substr(0, equals)};
  const std::string name = quoted(path);
  // A well-formed name stands bare: `rvma: error: --set nic.clock: ...`.
  const std::string prefix = "--set " + (!path.empty() && name.size() == path.size() + 2 ? path : name) + ": ";
  const auto fail = [&](const std::string& what, std::string expected) {
    errors.add(Position{"rvma", 0, 0}, prefix + what, std::move(expected));
  };
  const KeyTree tree(keys);
  KeyBase* const key = tree.key(path);
  if (key == nullptr) {
    if (const auto* section = path.empty() ? nullptr : tree.section(path)) {
      fail("is a section, not a key", "expected one of its keys: " + joined(*section));
      return;
    }
    std::string nearest = nearest_name(path, tree.all_paths());
    if (nearest.empty() && !path.empty()) nearest = tree.elsewhere(path);
    fail("unknown key", nearest.empty() ? "see rvma config --describe" : "did you mean " + quoted(nearest) + "?");
    return;
  }
  if (equals == std::string_view::npos) {
    fail("has no value", "expected --set " + path + "=VALUE");
    return;
  }
  if (const std::optional<ValueError> error = key->set_text(assignment.substr(equals + 1))) {
    fail(error->what, error->expected);
  }
}

json::value config_to_json(const std::vector<KeyRef>& keys) {
  json::value root = json::object();
  for (const KeyRef& ref : keys) {
    json::object* section = &root.get_object();
    std::string_view rest = ref.path;
    for (std::size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      json::value& inner = (*section)[json::string_view{rest.data(), dot}];
      if (!inner.is_object()) inner.emplace_object();
      section = &inner.get_object();
      rest.remove_prefix(dot + 1);
    }
    (*section)[json::string_view{rest.data(), rest.size()}] = ref.key->to_json();
  }
  return root;
}

void print_config(std::ostream& out, const std::vector<KeyRef>& keys) {
  print_pretty(out, config_to_json(keys), 0);
  out << '\n';
}

void describe_config(std::ostream& out, const std::vector<KeyRef>& keys) {
  static constexpr std::size_t kColumns = 5;
  std::vector<std::array<std::string, kColumns>> rows{{"key", "type", "default", "range", "meaning"}};
  for (const auto& [path, key] : keys) {
    rows.push_back({path, key->type_name(), key->default_text(), key->range_text(), std::string{key->description()}});
  }
  std::array<std::size_t, kColumns> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i + 1 < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    for (std::size_t i = 0; i + 1 < kColumns; ++i) out << fmt::format("{:<{}}  ", row[i], widths[i]);
    out << row[kColumns - 1] << '\n';
  }
}

void describe_config_markdown(std::ostream& out, const std::vector<KeyRef>& keys) {
  out << "| key | type | default | range | meaning |\n|---|---|---|---|---|\n";
  for (const auto& [path, key] : keys) {
    out << "| " << markdown_code(path) << " | " << markdown_cell(key->type_name()) << " | "
        << markdown_code(key->default_text()) << " | " << markdown_code(key->range_text()) << " | "
        << markdown_cell(key->description()) << " |\n";
  }
}

}  // namespace rvma
