#include "workload/import_htsim.hpp"

#include <boost/unordered/unordered_flat_map.hpp>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "workload/import_flows.hpp"
#include "workload/import_lines.hpp"
#include "workload/trace_limits.hpp"

namespace rvma::import_detail {
namespace {

constexpr std::uint64_t kMaxId = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMaxSize = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t kFlowTag = 0;
/// Of the messages that tell another rank that a trigger has fired.
constexpr std::uint32_t kTriggerTag = 1;

class MatrixReader {
 public:
  MatrixReader(const ImportSource& source, const ImportOptions& options, ImportGraph& graph, ImportLog& log)
      : lines_(source, 0, log), options_(options), graph_(graph), log_(log) {}

  void read() {
    while (lines_.next()) {
      const std::vector<Word>& words = lines_.words();
      if (words.empty() || words[0].text[0] == '#') continue;
      read_line(words);
    }
    if (!nodes_) return lines_.fail(1, "the file has no 'Nodes N'", "expected it at the begin");
    if (!connections_.is_given()) return lines_.fail(1, "the file has no 'Connections N'", "expected it at the begin");
    connections_.check(log_);
    triggers_count_.check(log_);
    failures_.check(log_);
    if (log_.errors().empty()) link_triggers();
    if (log_.errors().empty()) begin_at_zero(graph_, options_);
  }

 private:
  struct TriggerStart {
    std::uint32_t send;  ///< operation that the trigger starts
    ImportPlace place;
  };
  struct Trigger {
    bool is_defined = false;
    bool is_barrier = false;
    std::uint64_t count = 0;
    ImportPlace place;
    std::vector<std::uint32_t> causes;  ///< operations whose ends it waits for
    std::vector<TriggerStart> starts;
  };

  void read_line(const std::vector<Word>& words) {
    const std::string_view first = words[0].text;
    if (first == "Nodes" || first == "Connections" || first == "Triggers" || first == "Failures") {
      read_header(words);
    } else if (first.find("->") != std::string_view::npos) {
      connections_.count(lines_.position(1));
      read_flow(words);
    } else if (first == "trigger") {
      triggers_count_.count(lines_.position(1));
      read_trigger(words);
    } else if (first == "failure") {
      failures_.count(lines_.position(1));
      log_.lost(lines_.position(words[0].column), "a failure of a link: say it in fabric.faults.events");
    } else {
      const std::string near =
          nearest_name(first, {"Nodes", "Connections", "Triggers", "Failures", "trigger", "failure"});
      lines_.fail(words[0], "unknown word " + rvma::quoted(first),
                  near.empty() ? "expected a header, SRC->DST, trigger or failure" : "did you mean '" + near + "'?");
    }
  }

  void read_header(const std::vector<Word>& words) {
    const std::string name(words[0].text);
    if (words.size() != 2) {
      return lines_.fail(words.size() < 2 ? end_column() : words[2].column, "'" + name + "' needs one number",
                         "expected '" + name + " N'");
    }
    const bool is_nodes = name == "Nodes";
    const auto count = lines_.integer(words[1], is_nodes ? trace_detail::kMaxRanks : kMaxId, "number");
    if (!count) return;
    const Position place = lines_.position(words[0].column);
    if (is_nodes) {
      if (nodes_) return lines_.fail(words[0], "a second 'Nodes'", "expected it once");
      if (*count == 0) return lines_.fail(words[1], "'Nodes 0'", "expected at least 1");
      nodes_ = count;
      graph_.ranks = static_cast<std::uint32_t>(*count);
      return;
    }
    PromisedCount& promised = name == "Connections" ? connections_ : name == "Triggers" ? triggers_count_ : failures_;
    if (promised.is_given()) return lines_.fail(words[0], "a second '" + name + "'", "expected it once");
    promised.promise(*count, place);
  }

  std::uint32_t end_column() const { return static_cast<std::uint32_t>(lines_.text().size() + 1); }

  std::optional<std::uint32_t> node(const Word& word) {
    const auto value = lines_.integer(word, trace_detail::kMaxRanks - 1, "node");
    if (!value) return std::nullopt;
    if (nodes_ && *value >= *nodes_) {
      lines_.fail(word, "node " + std::to_string(*value) + " is out of range",
                  "expected 0.." + std::to_string(*nodes_ - 1));
      return std::nullopt;
    }
    return static_cast<std::uint32_t>(*value);
  }

  struct FlowWords {
    std::optional<std::uint64_t> size;
    std::optional<Time> start;
    std::optional<std::uint32_t> trigger;
    std::uint32_t send_done = 0;
    std::uint32_t receive_done = 0;
    bool is_good = true;
  };

  void read_flow(const std::vector<Word>& words) {
    if (!nodes_ && !told_nodes_) {
      told_nodes_ = true;
      lines_.fail(words[0], "a connection before 'Nodes N'", "expected it at the begin");
    }
    const std::size_t arrow = words[0].text.find("->");
    const auto column = static_cast<std::uint32_t>(words[0].column + arrow + 2);
    const auto source = node({words[0].text.substr(0, arrow), words[0].column});
    const auto destination = node({words[0].text.substr(arrow + 2), column});
    const FlowWords read = read_flow_words(words);
    if (!source || !destination || !read.is_good) return;
    if (!read.size) return lines_.fail(end_column(), "the connection has no size", "expected 'size BYTES'");
    if (read.start.has_value() == read.trigger.has_value()) {
      return lines_.fail(words[0],
                         read.start ? "the connection has a start and a trigger" : "the connection never starts",
                         "expected 'start TIME' or 'trigger ID'");
    }
    Flow flow{*source, *destination, kFlowTag, *read.size, read.start, lines_.place(words[0])};
    const FlowEnds ends = add_flow(graph_, flow);
    if (read.trigger) triggers_[*read.trigger].starts.push_back({ends.send, flow.place});
    if (read.send_done != 0) triggers_[read.send_done].causes.push_back(ends.send);
    if (read.receive_done != 0) triggers_[read.receive_done].causes.push_back(ends.receive);
  }

  FlowWords read_flow_words(const std::vector<Word>& words) {
    FlowWords read;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::string_view key = words[i].text;
      if (key == "addon") {
        log_.lost(lines_.position(words[i].column), "'addon'");
        continue;
      }
      if (!is_key(key)) {
        const std::string near = nearest_name(key, kKeys);
        lines_.fail(words[i], "unknown word " + rvma::quoted(key),
                    near.empty() ? "expected id, start, size, trigger, send_done_trigger, recv_done_trigger or prio"
                                 : "did you mean '" + near + "'?");
        read.is_good = false;
        return read;
      }
      if (i + 1 == words.size()) {
        lines_.fail(end_column(), "the line ends behind '" + std::string(key) + "'", "expected its value");
        read.is_good = false;
        return read;
      }
      read_value(key, words[++i], read);
    }
    return read;
  }

  static bool is_key(std::string_view word) {
    for (const std::string& key : kKeys) {
      if (key == word) return true;
    }
    return false;
  }

  void read_value(std::string_view key, const Word& word, FlowWords& read) {
    if (key == "start") {
      read.start = lines_.time(word, options_.start_unit, "start time");
      read.is_good = read.is_good && read.start.has_value();
      return;
    }
    const auto value = lines_.integer(word, key == "size" ? kMaxSize : kMaxId, "number");
    read.is_good = read.is_good && value.has_value();
    if (!value) return;
    if (key == "prio") return log_.lost(lines_.position(word.column), "the priority of a connection");
    if (*value == 0) {
      read.is_good = false;
      return lines_.fail(word, "'" + std::string(key) + " 0'",
                         key == "size" ? "expected a size; 0 is a flow without end" : "expected at least 1");
    }
    const auto id = static_cast<std::uint32_t>(*value);
    if (key == "size") read.size = *value;
    if (key == "id") check_id(id, word);
    if (key == "trigger") read.trigger = id;
    if (key == "send_done_trigger") read.send_done = id;
    if (key == "recv_done_trigger") read.receive_done = id;
  }

  void check_id(std::uint32_t id, const Word& word) {
    const auto [first, is_new] = ids_.try_emplace(id, lines_.number());
    if (is_new) return;
    lines_.fail(word, "a second connection of id " + std::to_string(id),
                "expected another one; line " + std::to_string(first->second) + " has this one");
  }

  void read_trigger(const std::vector<Word>& words) {
    std::optional<std::uint64_t> id;
    std::uint64_t count = 0;
    std::string type;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::string_view key = words[i].text;
      if (key == "oneshot" || key == "multishot" || key == "barrier") {
        type = key;
        continue;
      }
      if (key != "id" && key != "count") {
        return lines_.fail(words[i], "unknown word " + rvma::quoted(key),
                           "expected id, count, oneshot, multishot or barrier");
      }
      if (i + 1 == words.size()) {
        return lines_.fail(end_column(), "the line ends behind '" + std::string(key) + "'", "expected its value");
      }
      const auto value = lines_.integer(words[++i], kMaxId, "number");
      if (!value) return;
      if (key == "id") id = value;
      if (key == "count") count = *value;
    }
    if (!id || *id == 0) return lines_.fail(words[0], "the trigger has no id", "expected 'id N', at least 1");
    if (type.empty()) return lines_.fail(words[0], "the trigger has no type", "expected oneshot, multishot or barrier");
    Trigger& trigger = triggers_[static_cast<std::uint32_t>(*id)];
    if (trigger.is_defined) {
      return lines_.fail(words[0], "a second trigger of id " + std::to_string(*id),
                         "expected another one; line " + std::to_string(trigger.place.line) + " has this one");
    }
    trigger.is_defined = true;
    trigger.is_barrier = type == "barrier";
    trigger.count = count;
    trigger.place = lines_.place(words[0]);
  }

  // -------------------------------------------------------------------------------------------------------- triggers

  void link_triggers() {
    for (const auto& [id, trigger] : triggers_) {
      if (check_trigger(id, trigger)) link_trigger(trigger);
    }
  }

  bool check_trigger(std::uint32_t id, const Trigger& trigger) {
    const std::string name = "trigger " + std::to_string(id);
    if (!trigger.is_defined) {
      const ImportPlace& place =
          trigger.starts.empty() ? graph_.operations[trigger.causes.front()].place : trigger.starts.front().place;
      log_.errors().add(graph_.position(place), "there is no " + name, "expected a line 'trigger id N TYPE'");
      return false;
    }
    if (trigger.starts.empty()) return true;
    if (trigger.causes.empty()) {
      log_.errors().add(graph_.position(trigger.place), "nothing fires " + name,
                        "expected a connection with send_done_trigger or recv_done_trigger " + std::to_string(id));
      return false;
    }
    if (trigger.is_barrier && trigger.count != trigger.causes.size()) {
      log_.errors().add(graph_.position(trigger.place),
                        name + " waits for " + std::to_string(trigger.count) + " connections, " +
                            std::to_string(trigger.causes.size()) + " name it",
                        "expected 'count " + std::to_string(trigger.causes.size()) + "'");
      return false;
    }
    if (!trigger.is_barrier && trigger.causes.size() > 1) {
      log_.lost(graph_.position(trigger.place), name + " fires at the first of " +
                                                    std::to_string(trigger.causes.size()) +
                                                    " ends; here what it starts waits for all");
    }
    return true;
  }

  void link_trigger(const Trigger& trigger) {
    for (const std::uint32_t cause : trigger.causes) {
      std::map<std::uint32_t, std::uint32_t> told;  // ranks that hear of it, and where they do
      for (const TriggerStart& start : trigger.starts) {
        const std::uint32_t rank = graph_.operations[start.send].rank;
        std::uint32_t known = cause;
        if (graph_.operations[cause].rank != rank) {
          const auto [found, is_new] = told.try_emplace(rank, 0);
          if (is_new) found->second = tell(cause, rank, start.place);
          known = found->second;
        }
        graph_.dependencies.push_back({known, start.send, false, start.place});
      }
    }
  }

  /// A message of one byte to `rank` when `cause` has ended; returns its receive.
  std::uint32_t tell(std::uint32_t cause, std::uint32_t rank, const ImportPlace& place) {
    const FlowEnds ends = add_flow(graph_, {graph_.operations[cause].rank, rank, kTriggerTag, 1, std::nullopt, place});
    graph_.dependencies.push_back({cause, ends.send, false, place});
    return ends.receive;
  }

  static const std::vector<std::string> kKeys;

  ImportLines lines_;
  const ImportOptions& options_;
  ImportGraph& graph_;
  ImportLog& log_;
  std::optional<std::uint64_t> nodes_;
  bool told_nodes_ = false;
  PromisedCount connections_{"connection", "connections"};
  PromisedCount triggers_count_{"trigger", "triggers"};
  PromisedCount failures_{"failure", "failures"};
  std::map<std::uint32_t, Trigger> triggers_;
  boost::unordered_flat_map<std::uint32_t, std::uint32_t> ids_;  ///< of connections, and their lines
};

const std::vector<std::string> MatrixReader::kKeys{
    "id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger", "prio"};

}  // namespace

void read_htsim(const std::vector<ImportSource>& sources, const ImportOptions& options, ImportGraph& graph,
                ImportLog& log) {
  graph.remarks.push_back("imported from an htsim connection matrix");
  MatrixReader(sources.front(), options, graph, log).read();
}

}  // namespace rvma::import_detail
