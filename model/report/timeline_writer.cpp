#include "report/timeline_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <iterator>
#include <map>
#include <ostream>
#include <string_view>
#include <tuple>

#include "base/value_text.hpp"

namespace rvma {
namespace {

constexpr std::uint32_t kNone = TimelineSlice::kNone;
/// Thread numbers: units have their stage's, cores come behind them.
constexpr std::uint32_t kFirstCore = 100;

std::size_t index_of(Stage stage) { return static_cast<std::size_t>(stage); }

/// Units by the stage whose time is theirs, named as in stats.json. Stage::issued: the node itself.
using Names = std::array<std::string_view, kStages>;
constexpr Names kRvmaUnits = {"node",
                              "core",
                              "nic.command",
                              "nic.transmit: turn",
                              "nic.transmit: window",
                              "nic.dma_engine: payload read",
                              "nic.egress",
                              "fabric, from this node",
                              "nic.parser",
                              "nic.contexts",
                              "nic.conversion",
                              "nic.payload_writer",
                              "nic.counters",
                              "nic.completion_writer",
                              "memory"};

Names units_of(bool is_rdma) {
  Names names = kRvmaUnits;
  if (!is_rdma) return names;
  names[index_of(Stage::context)] = "nic.receive.queue_pairs";
  names[index_of(Stage::address_conversion)] = "nic.receive";
  names[index_of(Stage::count)] = "software: count";
  names[index_of(Stage::completion_write)] = "software: completion";
  return names;
}

std::string quote(std::string_view text) {
  return boost::json::serialize(boost::json::string_view{text.data(), text.size()});
}

/// Trace events count in microseconds; nothing of a time is lost.
std::string us_text(Time time) { return fmt::format("{}.{:06}", time.ps() / 1'000'000, time.ps() % 1'000'000); }

Time middle(Time from, Time to) { return from + Time::from_ps((to - from).ps() / 2); }

/// One line of the file, written when its turn has come. In the order of events of one time.
enum class Line : std::uint8_t { begin, slice, counter, flow, instant, remark, finish };
struct Event {
  Time at;
  Line line;
  std::uint8_t detail = 0;   ///< counter: its stage; flow: the letter of its phase
  std::uint32_t index = 0;   ///< of the slice, message, instant or remark; of a counter its process
  std::uint32_t number = 0;  ///< counter: packets; flow: index of the message
};

class Writer {
 public:
  Writer(std::ostream& out, const Timeline& timeline, const TimelineRun& run)
      : out_(out), timeline_(timeline), run_(run), units_(units_of(run.is_rdma)) {}

  void write() {
    lay_out();
    add_slices();
    add_counters();
    add_messages();
    add_flows();
    add_instants();
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Event& a, const Event& b) { return std::tie(a.at, a.line) < std::tie(b.at, b.line); });
    out_ << "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{" << about() << "},\n\"traceEvents\":[";
    write_names();
    for (const Event& event : events_) line(text_of(event));
    out_ << "\n]}\n";
  }

 private:
  static std::uint32_t process_of(NodeId node) { return node.value() + 1; }
  static std::uint32_t thread_of(const TimelineSlice& slice) {
    return slice.stage == Stage::doorbell ? kFirstCore + slice.pid.value() : static_cast<std::uint32_t>(slice.stage);
  }
  void line(std::string_view text) {
    out_ << (is_first_ ? "\n" : ",\n") << text;
    is_first_ = false;
  }
  void add(const Event& event) { events_.push_back(event); }
  std::string text_of(const Event& event) const {
    switch (event.line) {
      case Line::begin:
        return begin_text(timeline_.messages()[event.index]);
      case Line::finish:
        return finish_text(timeline_.messages()[event.index]);
      case Line::slice:
        return slice_text(event.index);
      case Line::counter:
        return counter_text(event);
      case Line::flow:
        return flow_text(event);
      case Line::instant:
        return instant_text(timeline_.instants()[event.index]);
      case Line::remark:
        return remark_text(event);
    }
    return {};
  }
  std::string where(const TimelineSlice& slice) const {
    return fmt::format("\"pid\":{},\"tid\":{}", process_of(slice.node), thread_of(slice));
  }
  static std::string_view kind(const TimelineMessage& message) {
    return message.kind == OperationKind::get ? "get" : "put";
  }

  /// A unit works at one thing at a time: from when it entered, or the one before left, to when it left.
  void lay_out() {
    const std::vector<TimelineSlice>& slices = timeline_.slices();
    order_.resize(slices.size());
    for (std::uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
    const auto key = [&](std::uint32_t i) {
      const TimelineSlice& slice = slices[i];
      return std::make_tuple(slice.node.value(), thread_of(slice), slice.left, slice.entered, i);
    };
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    begin_.resize(slices.size());
    const TimelineSlice* before = nullptr;
    for (const std::uint32_t i : order_) {
      const TimelineSlice& slice = slices[i];
      const bool is_same = before != nullptr && before->node == slice.node && thread_of(*before) == thread_of(slice);
      begin_[i] = is_same ? std::max(slice.entered, before->left) : slice.entered;
      before = &slice;
    }
  }

  void add_slices() {
    for (const std::uint32_t i : order_) add({begin_[i], Line::slice, 0, i});
  }
  std::string slice_text(std::uint32_t i) const {
    const TimelineSlice& slice = timeline_.slices()[i];
    std::string name = "completion";
    std::string arguments;
    if (slice.message != kNone) {
      const TimelineMessage& message = timeline_.messages()[slice.message];
      name = fmt::format("{} {}", kind(message), message.number);
      arguments = describe(message) + ",";
    }
    if (slice.packet != kNone) {
      arguments += fmt::format(R"("packet_bytes":{},"sequence":{},)", slice.bytes, slice.sequence);
    }
    if (slice.epoch != kNone) {
      const TimelineEpoch& epoch = timeline_.epochs()[slice.epoch];
      arguments += fmt::format(R"("window":"{:#018x}","epoch":{},"epoch_bytes":{},)", epoch.mailbox.value(),
                               epoch.number.value(), epoch.length);
    }
    return fmt::format(
        R"({{"ph":"X","name":"{}","cat":"{}","ts":{},"dur":{},{},"args":{{{}"entered_ns":{},"left_ns":{}}}}})", name,
        ValueText<Stage>::print(slice.stage), us_text(begin_[i]), us_text(slice.left - begin_[i]), where(slice),
        arguments, to_ns_string(slice.entered), to_ns_string(slice.left));
  }
  static std::string describe(const TimelineMessage& message) {
    return fmt::format(R"("message":{},"rank":{},"dest":{},"mailbox":"{:#018x}","bytes":{})", message.number,
                       message.rank.value(), message.destination.value(), message.mailbox.value(), message.size);
  }

  /// How many packets are in the unit.
  void add_counters() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::pair<Time, int>>> changes;
    for (const std::uint32_t i : order_) {
      const TimelineSlice& slice = timeline_.slices()[i];
      if (!Timeline::has_counter(slice.stage)) continue;
      auto& of_unit = changes[{process_of(slice.node), static_cast<std::uint32_t>(slice.stage)}];
      of_unit.emplace_back(slice.entered, 1);
      of_unit.emplace_back(slice.left, -1);
    }
    for (auto& [unit, of_unit] : changes) {
      std::sort(of_unit.begin(), of_unit.end());
      int level = 0;
      for (auto change = of_unit.begin(); change != of_unit.end();) {
        const Time at = change->first;
        for (; change != of_unit.end() && change->first == at; ++change) level += change->second;
        add({at, Line::counter, static_cast<std::uint8_t>(unit.second), unit.first, static_cast<std::uint32_t>(level)});
      }
    }
  }
  std::string counter_text(const Event& event) const {
    return fmt::format(R"x({{"ph":"C","name":"{} (packets)","ts":{},"pid":{},"args":{{"packets":{}}}}})x",
                       units_.at(event.detail), us_text(event.at), event.index, event.number);
  }

  /// From the call to the end at the sender's NIC; these overlap as they like.
  void add_messages() {
    for (std::uint32_t m = 0; m < timeline_.messages().size(); ++m) {
      const TimelineMessage& message = timeline_.messages()[m];
      add({message.issued, Line::begin, 0, m});
      add({end_of(message), Line::finish, 0, m});
    }
  }
  Time end_of(const TimelineMessage& message) const {
    return message.ended.is_never() ? std::max(run_.end, message.issued) : message.ended;
  }
  static std::string identify(const TimelineMessage& message) {
    return fmt::format(R"("name":"{}s of rank {}","cat":"message","id":{},"pid":{},"tid":0)", kind(message),
                       message.rank.value(), message.number, process_of(message.node));
  }
  static std::string begin_text(const TimelineMessage& message) {
    return fmt::format(R"({{"ph":"b",{},"ts":{},"args":{{{},"name":{},"status":"{}","tries":{}}}}})", identify(message),
                       us_text(message.issued), describe(message), quote(message.name),
                       ValueText<Outcome>::print(message.outcome), message.tries);
  }
  std::string finish_text(const TimelineMessage& message) const {
    return fmt::format(R"({{"ph":"e",{},"ts":{}}})", identify(message), us_text(end_of(message)));
  }

  /// The way of each message's last packet: from the core through both NICs to the completion.
  void add_flows() {
    const std::vector<TimelineSlice>& slices = timeline_.slices();
    std::vector<std::uint32_t> last_packet(timeline_.messages().size(), 0);
    for (const TimelineSlice& slice : slices) {
      if (slice.message == kNone || slice.packet == kNone) continue;
      last_packet[slice.message] = std::max(last_packet[slice.message], slice.packet);
    }
    using Path = std::array<std::uint32_t, kStages>;
    Path nothing;
    nothing.fill(kNone);
    std::vector<Path> paths(timeline_.messages().size(), nothing);
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      const TimelineSlice& slice = slices[i];
      // What takes no time on its track has no place for an arrow's end.
      if (slice.message == kNone || slice.epoch != kNone || begin_[i] >= slice.left) continue;
      if (slice.packet != kNone && slice.packet != last_packet[slice.message]) continue;
      paths[slice.message][index_of(slice.stage)] = i;
    }
    for (std::uint32_t m = 0; m < paths.size(); ++m) {
      const std::uint32_t end = timeline_.messages()[m].end_slice;
      if (end != kNone && begin_[end] < slices[end].left) paths[m][index_of(Stage::visible)] = end;
      add_flow(m, paths[m]);
    }
  }
  void add_flow(std::uint32_t message, const std::array<std::uint32_t, kStages>& path) {
    std::vector<std::uint32_t> stations;
    std::copy_if(path.begin(), path.end(), std::back_inserter(stations), [](std::uint32_t i) { return i != kNone; });
    if (stations.size() < 2) return;
    for (std::size_t s = 0; s < stations.size(); ++s) {
      const TimelineSlice& slice = timeline_.slices()[stations[s]];
      const bool is_between = s > 0 && s + 1 < stations.size();
      const bool is_shown =
          slice.stage == Stage::transmit || slice.stage == Stage::parse || slice.stage == Stage::dma_write;
      if (is_between && !is_shown) continue;
      const char phase = s == 0 ? 's' : is_between ? 't' : 'f';
      add({middle(begin_[stations[s]], slice.left), Line::flow, static_cast<std::uint8_t>(phase), stations[s],
           message});
    }
  }
  std::string flow_text(const Event& event) const {
    const TimelineMessage& message = timeline_.messages()[event.number];
    const auto phase = static_cast<char>(event.detail);
    return fmt::format(R"({{"ph":"{}",{}"name":"{}","cat":"message","id":{},"ts":{},{}}})", phase,
                       phase == 'f' ? R"("bp":"e",)" : "", kind(message), message.number, us_text(event.at),
                       where(timeline_.slices()[event.index]));
  }

  void add_instants() {
    for (std::uint32_t i = 0; i < timeline_.instants().size(); ++i) {
      add({timeline_.instants()[i].at, Line::instant, 0, i});
    }
    if (timeline_.is_full()) {
      remark(timeline_.full_at(), fmt::format("limit of {} events: nothing later is drawn", timeline_.options().limit));
    }
    for (const std::string& problem : run_.problems) remark(run_.end, problem);
  }
  void remark(Time at, std::string what) {
    add({at, Line::remark, 0, static_cast<std::uint32_t>(remarks_.size())});
    remarks_.push_back(std::move(what));
  }
  std::string instant_text(const TimelineInstant& instant) const {
    std::string arguments;
    if (instant.message != kNone) arguments = describe(timeline_.messages()[instant.message]);
    return fmt::format(R"({{"ph":"i","s":"{}","name":{},"ts":{},"pid":{},"tid":{},"args":{{{}}}}})",
                       instant.stage == Stage::issued ? "p" : "t", quote(instant.what), us_text(instant.at),
                       process_of(instant.node), index_of(instant.stage), arguments);
  }
  std::string remark_text(const Event& event) const {
    return fmt::format(R"({{"ph":"i","s":"g","name":{},"ts":{},"pid":1,"tid":0}})", quote(remarks_[event.index]),
                       us_text(event.at));
  }

  std::string about() const {
    const Timeline::Options& options = timeline_.options();
    std::string text =
        fmt::format(R"("program":"rvma","trace":{},"protocol":"{}","end_ns":{},"from_ns":{},)", quote(run_.trace),
                    run_.protocol, to_ns_string(run_.end), to_ns_string(options.from));
    text += options.to.is_never() ? R"("to_ns":null)" : fmt::format(R"("to_ns":{})", to_ns_string(options.to));
    text += fmt::format(R"(,"sample":{},"limit":{},"messages":{},"dropped_events":{},"full_at_ns":{},"problems":[)",
                        options.sample, options.limit, timeline_.messages().size(), timeline_.dropped_events(),
                        timeline_.is_full() ? to_ns_string(timeline_.full_at()) : "null");
    for (std::size_t i = 0; i < run_.problems.size(); ++i) text += (i == 0 ? "" : ",") + quote(run_.problems[i]);
    return text + "]";
  }

  void write_names() {
    std::map<std::uint32_t, std::map<std::uint32_t, std::string>> threads;
    for (const TimelineSlice& slice : timeline_.slices()) {
      std::string& name = threads[process_of(slice.node)][thread_of(slice)];
      if (!name.empty()) continue;
      name = units_[index_of(slice.stage)];
      if (slice.stage == Stage::doorbell) name += std::to_string(slice.pid.value());
    }
    for (const TimelineMessage& message : timeline_.messages()) threads[process_of(message.node)];
    for (const TimelineInstant& instant : timeline_.instants()) {
      auto& of_node = threads[process_of(instant.node)];
      if (instant.stage != Stage::issued) of_node[index_of(instant.stage)] = units_[index_of(instant.stage)];
    }
    for (const auto& [process, of_node] : threads) {
      name("process", process, 0, node_name(process - 1), process);
      for (const auto& [thread, text] : of_node)
        name("thread", process, thread, text, thread >= kFirstCore ? 0 : thread);
    }
  }
  void name(std::string_view what, std::uint32_t process, std::uint32_t thread, const std::string& text,
            std::uint32_t place) {
    line(fmt::format(R"({{"ph":"M","name":"{}_name","pid":{},"tid":{},"args":{{"name":{}}}}})", what, process, thread,
                     quote(text)));
    line(fmt::format(R"({{"ph":"M","name":"{}_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", what,
                     process, thread, place));
  }
  std::string node_name(std::uint32_t node) const {
    const std::uint64_t first = std::uint64_t{node} * run_.ranks_per_node;
    const std::uint64_t last = std::min<std::uint64_t>(first + run_.ranks_per_node, run_.ranks) - 1;
    return first == last ? fmt::format("node {}: rank {}", node, first)
                         : fmt::format("node {}: ranks {} to {}", node, first, last);
  }

  std::ostream& out_;
  const Timeline& timeline_;
  const TimelineRun& run_;
  const Names units_;
  std::vector<std::uint32_t> order_;  ///< of slices: by track, by time
  std::vector<Time> begin_;           ///< of each slice on its track
  std::vector<Event> events_;
  std::vector<std::string> remarks_;  ///< about the whole run
  bool is_first_ = true;
};

}  // namespace

void write_timeline(std::ostream& out, const Timeline& timeline, const TimelineRun& run) {
  Writer(out, timeline, run).write();
}

}  // namespace rvma
