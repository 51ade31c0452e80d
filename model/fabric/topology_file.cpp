#include "fabric/topology_file.hpp"

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "base/value_text.hpp"

namespace rvma {
namespace {

constexpr std::uint16_t kUnknown = std::numeric_limits<std::uint16_t>::max();
constexpr std::uint64_t kMostParallel = 1024;
constexpr std::uint64_t kLastNumber = (std::uint64_t{1} << 20U) - 1;
constexpr std::string_view kSwitch = "switch";

struct Word {
  std::string_view text;
  std::size_t column;  ///< from 1
};

std::vector<Word> words_of(std::string_view line) {
  static constexpr std::string_view kBlanks = " \t\r";
  std::vector<Word> words;
  std::size_t at = 0;
  while ((at = line.find_first_not_of(kBlanks, at)) != std::string_view::npos && line[at] != '#') {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back({line.substr(at, end - at), at + 1});
    at = end;
  }
  return words;
}

/// Reads one file; goes on after a mistake.
class Parser {
 public:
  Parser(const std::string& source, ErrorList& errors) : source_(source), errors_(errors) {}

  LinkList parse(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      read_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (!errors_.empty()) return {};
    if (!has_header_) {
      fail(1, 1, "the file has no line 'rvma-topology 1'", "expected it as the first line");
    } else {
      check_numbers();
      if (errors_.empty()) check_reach();
    }
    return std::move(list_);
  }

 private:
  void fail(std::size_t line, std::size_t column, std::string what, std::string expected) {
    errors_.add(Position{source_, line, column}, std::move(what), std::move(expected));
  }

  void read_line(std::string_view line) {
    const std::vector<Word> words = words_of(line);
    if (words.empty()) return;
    if (!has_header_) {
      has_header_ = true;
      if (words[0].text != "rvma-topology" || words.size() != 2 || words[1].text != "1") {
        fail(line_, words[0].column, "not a topology file: it begins with " + quoted(words[0].text),
             "expected 'rvma-topology 1'");
      }
      return;
    }
    if (words[0].text != "link") {
      fail(line_, words[0].column, "unknown word " + quoted(words[0].text), "expected link A B [CABLES]");
      return;
    }
    if (words.size() < 3 || words.size() > 4) {
      fail(line_, words.size() < 3 ? line.size() + 1 : words[4].column,
           "link with " + std::to_string(words.size() - 1) + " arguments", "expected link A B [CABLES]");
      return;
    }
    const auto one = read_end(words[1]);
    const auto other = read_end(words[2]);
    std::uint64_t cables = 1;
    if (words.size() == 4) {
      const auto number = parse_integer(words[3].text, kMostParallel, "number of cables");
      if (!number || *number == 0) {
        fail(line_, words[3].column, number ? "0 cables" : number.error().what,
             "expected 1 to " + std::to_string(kMostParallel));
        return;
      }
      cables = *number;
    }
    if (one && other) join(words, *one, *other, cables);
  }

  struct End {
    bool is_switch;
    std::uint32_t number;
  };
  std::optional<End> read_end(const Word& word) {
    const bool is_switch = word.text.substr(0, kSwitch.size()) == kSwitch;
    const auto number =
        parse_integer(word.text.substr(is_switch ? kSwitch.size() : 0), kLastNumber, is_switch ? "switch" : "node");
    if (!number) {
      fail(line_, word.column, quoted(word.text) + " names no node and no switch",
           "expected a node's number or a switch such as switch3, up to " + std::to_string(kLastNumber));
      return std::nullopt;
    }
    return End{is_switch, static_cast<std::uint32_t>(*number)};
  }

  void join(const std::vector<Word>& words, const End& one, const End& other, std::uint64_t cables) {
    if (!one.is_switch && !other.is_switch) {
      fail(line_, words[1].column, "a link between two nodes", "expected a switch at one end at least");
    } else if (one.is_switch && other.is_switch) {
      if (one.number == other.number) {
        fail(line_, words[2].column, "a link from " + quoted(words[1].text) + " to itself", "expected another switch");
        return;
      }
      std::vector<PortEnd>& from = ports_of(one.number);
      ports_of(other.number);
      std::vector<PortEnd>& here = list_.ports[one.number];
      std::vector<PortEnd>& there = list_.ports[other.number];
      static_cast<void>(from);
      for (std::uint64_t cable = 0; cable < cables; ++cable) {
        const auto here_port = static_cast<Port>(here.size());
        const auto there_port = static_cast<Port>(there.size());
        here.push_back(PortEnd::of_switch(other.number, there_port));
        there.push_back(PortEnd::of_switch(one.number, here_port));
      }
    } else {
      const std::uint32_t node = one.is_switch ? other.number : one.number;
      const std::uint32_t to = one.is_switch ? one.number : other.number;
      const Word& word = one.is_switch ? words[2] : words[1];
      const auto first = node_lines_.find(node);
      if (first != node_lines_.end()) {
        fail(line_, word.column, "a second link of node " + std::to_string(node),
             "expected one a node; the first is on line " + std::to_string(first->second));
        return;
      }
      if (cables != 1) {
        fail(line_, words[3].column, std::to_string(cables) + " cables of node " + std::to_string(node),
             "expected one cable a node");
        return;
      }
      node_lines_.emplace(node, line_);
      if (list_.attachments.size() <= node) list_.attachments.resize(std::size_t{node} + 1);
      std::vector<PortEnd>& ports = ports_of(to);
      list_.attachments[node] = {SwitchId{to}, static_cast<Port>(ports.size())};
      ports.push_back(PortEnd::of_node(node));
    }
  }

  std::vector<PortEnd>& ports_of(std::uint32_t number) {
    if (list_.ports.size() <= number) list_.ports.resize(std::size_t{number} + 1);
    return list_.ports[number];
  }

  void check_numbers() {
    if (list_.attachments.empty()) {
      fail(1, 1, "the file has no node", "expected a link such as: link 0 switch0");
      return;
    }
    for (std::uint32_t node = 0; node < list_.attachments.size(); ++node) {
      if (node_lines_.count(node) != 0) continue;
      fail(1, 1,
           "node " + std::to_string(node) + " has no link, node " + std::to_string(list_.attachments.size() - 1) +
               " has one",
           "expected nodes 0, 1, .. without a gap");
      return;
    }
    for (std::size_t number = 0; number < list_.ports.size(); ++number) {
      if (!list_.ports[number].empty()) continue;
      fail(1, 1,
           "switch" + std::to_string(number) + " has no link, switch" + std::to_string(list_.ports.size() - 1) +
               " has one",
           "expected switches 0, 1, .. without a gap");
      return;
    }
  }

  void check_reach() {
    std::vector<bool> seen(list_.ports.size(), false);
    std::vector<std::uint32_t> open{0};
    seen[0] = true;
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      for (const PortEnd& end : list_.ports[at]) {
        if (!end.is_switch() || seen[end.index]) continue;
        seen[end.index] = true;
        open.push_back(end.index);
      }
    }
    const auto missed = std::find(seen.begin(), seen.end(), false);
    if (missed == seen.end()) return;
    fail(1, 1, "no way leads from switch0 to switch" + std::to_string(missed - seen.begin()),
         "expected all switches to be connected");
  }

  const std::string& source_;
  ErrorList& errors_;
  LinkList list_;
  std::size_t line_ = 0;
  bool has_header_ = false;
  boost::unordered_flat_map<std::uint32_t, std::size_t> node_lines_;
};

/// What is wrong with a file as a whole, or nothing.
std::optional<ValueError> whole_file_fault(std::string_view text) {
  static constexpr std::string_view kLfs = "version https://git-lfs.github.com/spec/";
  static constexpr std::array<std::string_view, 2> kCompressed{"\x1f\x8b", "\x28\xb5\x2f\xfd"};
  static constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return ValueError{"the file is empty", "expected 'rvma-topology 1' and links"};
  }
  if (text.substr(0, kLfs.size()) == kLfs) {
    return ValueError{"the file is a Git LFS pointer, not its content", "fetch it with: git lfs pull"};
  }
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    return ValueError{"the file begins with a byte order mark", "expected 'rvma-topology 1'"};
  }
  for (const std::string_view magic : kCompressed) {
    if (text.substr(0, magic.size()) == magic) return ValueError{"the file is compressed", "expected text"};
  }
  if (text.find('\0') != std::string_view::npos) return ValueError{"the file is binary", "expected text"};
  return std::nullopt;
}

}  // namespace

LinkList parse_link_list(std::string_view text, const std::string& source, ErrorList& errors) {
  if (const auto fault = whole_file_fault(text)) {
    errors.add(Position{source, 1, 1}, fault->what, fault->expected);
    return {};
  }
  ErrorList own;
  Parser parser(source, own);
  LinkList list = parser.parse(text);
  errors.add_all(own);
  return own.empty() ? std::move(list) : LinkList{};
}

LinkList read_link_list(const std::string& path, ErrorList& errors) {
  // A directory cannot be read, and a pipe may never end.
  std::error_code unknown;
  const bool is_file = std::filesystem::is_regular_file(path, unknown);
  std::ifstream file;
  if (is_file) file.open(path, std::ios::binary);
  std::string text;
  if (is_file && file) text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  if (!is_file || !file || file.bad()) {
    errors.add(Position{path, 1, 1}, "the file cannot be read", "expected a list of links (fabric.file.path)");
    return {};
  }
  return parse_link_list(text, path, errors);
}

FileShape::FileShape(LinkList links, std::uint32_t nodes)
    : Shape(nodes), links_(std::move(links)), diameter_to_nodes_(diameter(false)), distances_(links_.ports.size()) {
  RVMA_ASSERT(nodes <= links_.attachments.size(), "more nodes than the file has");
}

PortEnd FileShape::end(SwitchId at, Port port) const {
  const PortEnd end = links_.ports[at.index()][port];
  return end.is_node() && end.index >= nodes() ? PortEnd{} : end;
}

const std::vector<std::uint16_t>& FileShape::distances_to(SwitchId target) const {
  std::vector<std::uint16_t>& found = distances_[target.index()];
  if (!found.empty()) return found;
  found.assign(links_.ports.size(), kUnknown);
  found[target.index()] = 0;
  std::vector<std::uint32_t> open{target.value()};
  for (std::size_t next = 0; next < open.size(); ++next) {
    for (const PortEnd& end : links_.ports[open[next]]) {
      if (!end.is_switch() || found[end.index] != kUnknown) continue;
      found[end.index] = static_cast<std::uint16_t>(found[open[next]] + 1);
      open.push_back(end.index);
    }
  }
  return found;
}

void FileShape::minimal(SwitchId at, SwitchId target, std::vector<Port>& outputs) const {
  const std::vector<std::uint16_t>& distance_to = distances_to(target);
  const std::vector<PortEnd>& ends = links_.ports[at.index()];
  for (Port port = 0; port < ends.size(); ++port) {
    if (ends[port].is_switch() && distance_to[ends[port].index] + 1 == distance_to[at.index()]) outputs.push_back(port);
  }
}

std::uint32_t FileShape::diameter(bool to_any_switch) const {
  // Breadth-first from 64 switches at a time, a bit each.
  std::vector<std::uint32_t> targets;
  for (std::uint32_t number = 0; number < switches(); ++number) {
    const auto& ends = links_.ports[number];
    const bool has_nodes = std::any_of(ends.begin(), ends.end(), [](const PortEnd& end) { return end.is_node(); });
    if (to_any_switch || has_nodes) targets.push_back(number);
  }
  std::uint32_t greatest = 0;
  std::vector<std::uint64_t> reached(switches());
  std::vector<std::uint64_t> before;
  for (std::size_t first = 0; first < targets.size(); first += 64) {
    std::fill(reached.begin(), reached.end(), 0);
    for (std::size_t i = first; i < std::min(first + 64, targets.size()); ++i) {
      reached[targets[i]] |= std::uint64_t{1} << (i - first);
    }
    bool grows = true;
    for (std::uint32_t hops = 0; grows; ++hops) {
      greatest = std::max(greatest, hops);
      before = reached;
      grows = false;
      for (std::uint32_t number = 0; number < switches(); ++number) {
        for (const PortEnd& end : links_.ports[number]) {
          if (end.is_switch()) reached[number] |= before[end.index];
        }
        grows = grows || reached[number] != before[number];
      }
    }
  }
  return greatest;
}

std::uint32_t FileShape::channels(Routing routing, SwitchId /*at*/, Port /*port*/) const {
  if (routing != Routing::valiant && routing != Routing::ugal) return std::max(1U, diameter_to_nodes_);
  if (diameter_ == 0) diameter_ = std::max(1U, diameter(true));
  return diameter_ + std::max(1U, diameter_to_nodes_);
}

std::uint32_t FileShape::channel(Routing /*routing*/, SwitchId /*at*/, Port /*port*/, SwitchId /*target*/,
                                 const RouteState& route) const {
  return route.hops;
}

}  // namespace rvma
