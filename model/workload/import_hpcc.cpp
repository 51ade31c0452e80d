#include "workload/import_hpcc.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <limits>
#include <numeric>
#include <optional>
#include <ostream>
#include <utility>

#include "base/value_text.hpp"
#include "workload/import_flows.hpp"
#include "workload/import_lines.hpp"
#include "workload/trace_limits.hpp"

namespace rvma::import_detail {
namespace {

constexpr std::uint64_t kMaxPort = std::numeric_limits<std::uint16_t>::max();
constexpr std::uint64_t kMaxNodes = trace_detail::kMaxRanks;
constexpr std::uint64_t kMaxLines = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMaxCables = 1024;  // of a line of the link list

struct Link {
  std::uint32_t one = 0;
  std::uint32_t other = 0;
  Rate rate;
  Time delay;
  std::string error_rate;
  ImportPlace place;
};

struct Topology {
  std::vector<bool> is_switch;        ///< by node
  std::vector<std::uint32_t> number;  ///< of each node among the hosts or among the switches
  std::uint32_t hosts = 0;
  std::vector<Link> links;
};

std::uint32_t end_column(const ImportLines& lines) { return static_cast<std::uint32_t>(lines.text().size() + 1); }

/// Whether the body goes on behind what its header promises. Says so once; the rest is not looked at.
bool is_beyond(const PromisedCount& count, ImportLines& lines, const std::string& what, ImportLog& log) {
  if (!count.is_complete()) return false;
  log.doubt(lines.position(1),
            "the header promises " + std::to_string(count.promised()) + " " + what + ", this is more",
            "expected the end of the file");
  return true;
}

// ------------------------------------------------------------------------------------------------------------ topology

class TopologyReader {
 public:
  TopologyReader(const ImportSource& source, std::uint32_t index, ImportLog& log)
      : lines_(source, index, log), log_(log) {}

  Topology read() {
    while (lines_.next()) {
      const std::vector<Word>& words = lines_.words();
      if (words.empty()) continue;
      if (!links_.is_given()) {
        if (!read_header(words)) return {};
      } else if (!switches_.is_complete()) {
        read_switches(words);
      } else if (is_beyond(links_, lines_, "links", log_)) {
        return std::move(topology_);
      } else {
        links_.count(lines_.position(1));
        read_link(words);
      }
      if (links_.is_given() && switches_.is_complete() && topology_.number.empty()) number_nodes();
    }
    if (!links_.is_given()) lines_.fail(1, "the file has no header", "expected 'NODES SWITCHES LINKS'");
    if (!switches_.is_complete()) switches_.check(log_);
    if (switches_.is_complete()) links_.check(log_);
    if (log_.errors().empty()) check_connected();
    return std::move(topology_);
  }

 private:
  /// False: nothing is to be made of the file.
  bool read_header(const std::vector<Word>& words) {
    if (words.size() != 3) {
      lines_.fail(words.size() < 3 ? end_column(lines_) : words[3].column,
                  "the header has " + std::to_string(words.size()) + " words", "expected 'NODES SWITCHES LINKS'");
      return false;
    }
    const auto nodes = lines_.integer(words[0], kMaxNodes, "number of nodes");
    const auto switches = lines_.integer(words[1], kMaxNodes, "number of switches");
    const auto links = lines_.integer(words[2], kMaxLines, "number of links");
    if (!nodes || !switches || !links) return false;
    if (*switches >= *nodes) {
      lines_.fail(words[1], std::to_string(*switches) + " switches of " + std::to_string(*nodes) + " nodes",
                  "expected at least one node that is no switch");
      return false;
    }
    if (*switches == 0) {
      lines_.fail(words[1], "a topology without a switch", "expected at least one switch");
      return false;
    }
    if (*links == 0) {
      lines_.fail(words[2], "a topology without a link", "expected at least one link");
      return false;
    }
    topology_.is_switch.assign(*nodes, false);
    nodes_place_ = lines_.position(words[0].column);
    switches_.promise(*switches, lines_.position(words[1].column));
    links_.promise(*links, lines_.position(words[2].column));
    return true;
  }

  std::optional<std::uint32_t> node(const Word& word) {
    const auto value = lines_.integer(word, kMaxNodes, "node");
    if (!value) return std::nullopt;
    if (*value < topology_.is_switch.size()) return static_cast<std::uint32_t>(*value);
    lines_.fail(word, "node " + std::to_string(*value) + " is out of range",
                "expected 0.." + std::to_string(topology_.is_switch.size() - 1));
    return std::nullopt;
  }

  void read_switches(const std::vector<Word>& words) {
    for (const Word& word : words) {
      if (switches_.is_complete()) {
        return lines_.fail(word, "more switches than the header promises",
                           "expected " + std::to_string(switches_.promised()));
      }
      switches_.count(lines_.position(word.column));
      const auto number = node(word);
      if (!number) continue;
      if (topology_.is_switch[*number])
        lines_.fail(word, "switch " + std::to_string(*number) + " is named twice", "expected each once");
      topology_.is_switch[*number] = true;
    }
  }

  void number_nodes() {
    std::uint32_t switches = 0;
    for (const bool is_switch : topology_.is_switch) {
      topology_.number.push_back(is_switch ? switches++ : topology_.hosts++);
    }
    first_link_.assign(topology_.is_switch.size(), 0);
  }

  void read_link(const std::vector<Word>& words) {
    if (words.size() != 5) {
      return lines_.fail(words.size() < 5 ? end_column(lines_) : words[5].column,
                         "a link has " + std::to_string(words.size()) + " words",
                         "expected 'SRC DST RATE DELAY ERROR'");
    }
    const auto one = node(words[0]);
    const auto other = node(words[1]);
    const auto rate = read_rate(words[2]);
    const auto delay = parse_time(words[3].text);
    if (!delay) lines_.fail(words[3], delay.error().what, delay.error().expected);
    const auto error_rate = ValueText<Probability>::parse(words[4].text);
    if (!error_rate) lines_.fail(words[4], error_rate.error().what, error_rate.error().expected);
    if (!one || !other || !rate || !delay || !error_rate) return;
    if (*one == *other) return lines_.fail(words[1], "a link from a node to itself", "expected another node");
    if (!topology_.is_switch[*one] && !topology_.is_switch[*other])
      return lines_.fail(words[0], "a link between two hosts", "expected a switch at one end at least");
    for (const auto& [end, word] : {std::pair{*one, words[0]}, std::pair{*other, words[1]}}) {
      if (topology_.is_switch[end]) continue;
      if (first_link_[end] != 0) {
        return lines_.fail(word, "a second link of host " + std::to_string(end),
                           "expected one a host; the first is on line " + std::to_string(first_link_[end]));
      }
      first_link_[end] = lines_.number();
    }
    topology_.links.push_back({*one, *other, *rate, *delay,
                               error_rate->ppb() == 0 ? "" : ValueText<Probability>::print(*error_rate),
                               lines_.place(words[0])});
  }

  /// ns-3 also writes `Gb/s` for what is `Gbps` here.
  std::optional<Rate> read_rate(const Word& word) {
    std::string text(word.text);
    constexpr std::string_view kBitsASecond = "b/s";
    if (text.size() > kBitsASecond.size() &&
        text.compare(text.size() - kBitsASecond.size(), kBitsASecond.size(), kBitsASecond) == 0) {
      text.replace(text.size() - kBitsASecond.size(), kBitsASecond.size(), "bps");
    }
    const auto rate = parse_rate(text);
    if (!rate) lines_.fail(word, rate.error().what, rate.error().expected);
    if (rate && rate->bits_per_s() == 0) lines_.fail(word, "a rate of 0", "expected a rate such as 100Gbps");
    if (!rate || rate->bits_per_s() == 0) return std::nullopt;
    return *rate;
  }

  /// Every node reaches every other, or a mistake: what the file lacks shows only now.
  void check_connected() {
    std::vector<std::uint32_t> leads_to(topology_.is_switch.size());
    std::iota(leads_to.begin(), leads_to.end(), 0U);
    const auto island_of = [&](std::uint32_t node) {
      while (leads_to[node] != node) node = leads_to[node] = leads_to[leads_to[node]];
      return node;
    };
    for (const auto& link : topology_.links) leads_to[island_of(link.one)] = island_of(link.other);
    for (std::uint32_t node = 1; node < leads_to.size(); ++node) {
      if (island_of(node) == island_of(0)) continue;
      log_.errors().add(Error{nodes_place_, "no links lead from node 0 to node " + std::to_string(node),
                              "expected that every node reaches every other"});
      return;
    }
  }

  ImportLines lines_;
  ImportLog& log_;
  Position nodes_place_;
  Topology topology_;
  PromisedCount switches_{"switch", "switches"};
  PromisedCount links_{"link", "links"};
  std::vector<std::uint32_t> first_link_;  ///< line of each host's link, 0: none yet
};

// --------------------------------------------------------------------------------------------------------------- flows

class FlowReader {
 public:
  FlowReader(const ImportSource& source, const Topology* topology, ImportGraph& graph, ImportLog& log)
      : lines_(source, 0, log), topology_(topology), graph_(graph), log_(log) {}

  void read() {
    while (lines_.next()) {
      const std::vector<Word>& words = lines_.words();
      if (words.empty()) continue;
      if (!flows_.is_given()) {
        if (!read_header(words)) return;
      } else if (is_beyond(flows_, lines_, "flows", log_)) {
        break;
      } else {
        flows_.count(lines_.position(1));
        read_flow(words);
      }
    }
    if (!flows_.is_given()) return lines_.fail(1, "the file has no header", "expected the number of flows");
    flows_.check(log_);
    graph_.ranks = topology_ != nullptr ? topology_->hosts : last_ + 1;
  }

 private:
  bool read_header(const std::vector<Word>& words) {
    if (words.size() != 1) {
      lines_.fail(words[1], "the header has " + std::to_string(words.size()) + " words",
                  "expected the number of flows");
      return false;
    }
    const auto count = lines_.integer(words[0], kMaxLines, "number of flows");
    if (!count) return false;
    if (*count == 0) lines_.fail(words[0], "a file without flows", "expected at least one");
    flows_.promise(*count, lines_.position(words[0].column));
    return *count != 0;
  }

  std::optional<std::uint32_t> host(const Word& word) {
    const auto value = lines_.integer(word, kMaxNodes - 1, "node");
    if (!value) return std::nullopt;
    const auto node = static_cast<std::uint32_t>(*value);
    if (topology_ == nullptr) {
      last_ = std::max(last_, node);
      return node;
    }
    if (node >= topology_->is_switch.size()) {
      lines_.fail(word, "node " + std::to_string(node) + " is out of range",
                  "expected one of the topology, 0.." + std::to_string(topology_->is_switch.size() - 1));
      return std::nullopt;
    }
    if (topology_->is_switch[node]) {
      lines_.fail(word, "node " + std::to_string(node) + " is a switch", "expected a host");
      return std::nullopt;
    }
    return topology_->number[node];
  }

  void read_flow(const std::vector<Word>& words) {
    if (words.size() != 6) {
      return lines_.fail(words.size() < 6 ? end_column(lines_) : words[6].column,
                         "a flow has " + std::to_string(words.size()) + " words",
                         "expected 'SRC DST PRIORITY_GROUP DST_PORT SIZE START'");
    }
    const auto source = host(words[0]);
    const auto destination = host(words[1]);
    const auto group = lines_.integer(words[2], kMaxPort, "priority group");
    const auto port = lines_.integer(words[3], kMaxPort, "port");
    const auto size = lines_.integer(words[4], std::numeric_limits<std::uint64_t>::max(), "size in bytes");
    const auto start = lines_.time(words[5], "s", "start time");
    if (!source || !destination || !group || !port || !size || !start) return;
    const auto tag = static_cast<std::uint32_t>(*group << 16U | *port);
    add_flow(graph_, {*source, *destination, tag, *size, *start, lines_.place(words[0])});
  }

  ImportLines lines_;
  const Topology* topology_;
  ImportGraph& graph_;
  ImportLog& log_;
  PromisedCount flows_{"flow", "flows"};
  std::uint32_t last_ = 0;  ///< greatest node
};

// --------------------------------------------------------------------------------------------------------- link list

/// Links as our topology file has them: all alike, a faster one as several cables.
class LinkListWriter {
 public:
  LinkListWriter(const Topology& topology, const ImportSource& source, ImportLog& log)
      : topology_(topology), source_(source), log_(log) {}

  void write(std::ostream& links, std::ostream& config, const std::string& links_path) {
    const auto slowest =
        std::min_element(topology_.links.begin(), topology_.links.end(),
                         [](const Link& a, const Link& b) { return a.rate.bits_per_s() < b.rate.bits_per_s(); });
    base_ = *slowest;
    links << "rvma-topology 1\n# imported from an HPCC topology\n";
    for (const Link& link : topology_.links) {
      links << "link " << end_name(link.one) << " " << end_name(link.other);
      const std::uint64_t cables = cables_of(link);
      if (cables > 1) links << " " << cables;
      links << "\n";
      compare(link);
    }
    config << "{\n  \"fabric\": {\n    \"topology\": \"file\",\n    \"file\": {\"path\": "
           << boost::json::serialize(boost::json::string(links_path)) << "},\n    \"link\": {\"rate\": \""
           << ValueText<Rate>::print(base_.rate) << "\", \"latency\": \"" << ValueText<Time>::print(base_.delay)
           << "\"}";
    if (!base_.error_rate.empty()) config << ",\n    \"faults\": {\"drop\": \"" << base_.error_rate << "\"}";
    config << "\n  }\n}\n";
  }

 private:
  std::string end_name(std::uint32_t node) const {
    return (topology_.is_switch[node] ? "switch" : "") + std::to_string(topology_.number[node]);
  }

  std::uint64_t cables_of(const Link& link) {
    const std::uint64_t rate = link.rate.bits_per_s();
    const std::uint64_t base = base_.rate.bits_per_s();
    const bool joins_switches = topology_.is_switch[link.one] && topology_.is_switch[link.other];
    const bool fits = rate % base == 0 && rate / base <= kMaxCables;
    if (joins_switches && fits) return rate / base;
    if (rate != base) {
      lost(link,
           "a rate of " + ValueText<Rate>::print(link.rate) + ": this link has " + ValueText<Rate>::print(base_.rate));
    }
    return 1;
  }

  void compare(const Link& link) {
    if (link.delay != base_.delay)
      lost(link, "a delay of " + ValueText<Time>::print(link.delay) + ": all links have " +
                     ValueText<Time>::print(base_.delay));
    if (link.error_rate != base_.error_rate) {
      lost(link, "an error rate of " + (link.error_rate.empty() ? "0" : link.error_rate) +
                     ": packets are lost on their last hop, at one rate");
    }
  }

  void lost(const Link& link, const std::string& what) {
    log_.lost({source_.name, link.place.line, link.place.column}, what);
  }

  const Topology& topology_;
  const ImportSource& source_;
  ImportLog& log_;
  Link base_;  ///< what all links are
};

}  // namespace

void read_hpcc(const std::vector<ImportSource>& sources, const ImportOptions& options, ImportGraph& graph,
               ImportLog& log) {
  graph.remarks.push_back("imported from an HPCC flow file");
  std::optional<Topology> topology;
  if (sources.size() > 1) topology = TopologyReader(sources[1], 1, log).read();
  if (!log.errors().empty()) return;
  FlowReader(sources.front(), topology ? &*topology : nullptr, graph, log).read();
  if (log.errors().empty()) begin_at_zero(graph, options);
}

}  // namespace rvma::import_detail

namespace rvma {

void import_topology(const ImportSource& source, const std::string& links_path, std::ostream& links,
                     std::ostream& config, ImportLog& log) {
  const import_detail::Topology topology = import_detail::TopologyReader(source, 0, log).read();
  if (!log.errors().empty()) return;
  import_detail::LinkListWriter(topology, source, log).write(links, config, links_path);
}

}  // namespace rvma
