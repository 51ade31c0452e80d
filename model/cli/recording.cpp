#include "cli/recording.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/value_text.hpp"
#include "cli/command_line.hpp"

namespace rvma::cli {
namespace po = boost::program_options;
namespace {

/// Fewer than these show nothing of one message.
constexpr std::uint64_t kLeastEvents = 100;
/// Ethernet to data extension, and the CRC: what a dissector needs to show a packet.
constexpr std::uint64_t kLeastSnapBytes = 106;

/// A whole number in [least, most].
std::optional<std::uint64_t> number(const po::variables_map& values, const std::string& name, std::uint64_t least,
                                    std::uint64_t most, ErrorList& errors) {
  const auto parsed = parse_integer(values[name].as<std::string>(), most, "number");
  if (parsed && *parsed >= least) return *parsed;
  errors.add(command_line_error(
      "--" + name + ": " + (parsed ? quoted(values[name].as<std::string>()) + " is too small" : parsed.error().what),
      "expected a number from " + std::to_string(least) + " to " + std::to_string(most)));
  return std::nullopt;
}

/// FROM..TO; either may be left out.
void read_window(const std::string& text, Timeline::Options& options, ErrorList& errors) {
  const auto wrong = [&](const std::string& what, const std::string& expected) {
    errors.add(command_line_error("--timeline-window: " + what, expected));
  };
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    wrong(quoted(text) + " is no window", "expected FROM..TO, like 10us..20us, 10us.. or ..20us");
    return;
  }
  const std::string_view from = std::string_view{text}.substr(0, dots);
  const std::string_view to = std::string_view{text}.substr(dots + 2);
  const auto time = [&](std::string_view part, Time& into) {
    if (part.empty()) return true;
    const auto parsed = parse_time(part);
    if (parsed) {
      into = *parsed;
      return true;
    }
    wrong(parsed.error().what, parsed.error().expected);
    return false;
  };
  if (!time(from, options.from) || !time(to, options.to)) return;
  if (options.from >= options.to) wrong(quoted(text) + " is empty", "expected FROM before TO");
}

/// 0,3,8-15
void read_nodes(const std::string& text, std::vector<NodeId>& nodes, ErrorList& errors) {
  const auto wrong = [&](std::string_view part) {
    errors.add(command_line_error("--pcap-nodes: " + quoted(part) + " is no node",
                                  "expected node numbers and ranges, like 0,3,8-15"));
  };
  // Greater ones are found when the run's nodes are known; a range must not be listed before.
  constexpr std::uint64_t kMost = 0xff'ffff;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const std::size_t dash = part.find('-');
    const auto first = parse_integer(part.substr(0, dash), kMost, "node");
    const auto last = dash == std::string_view::npos ? first : parse_integer(part.substr(dash + 1), kMost, "node");
    if (!first || !last || *first > *last) return wrong(part);
    for (std::uint64_t node = *first; node <= *last; ++node) nodes.emplace_back(static_cast<std::uint32_t>(node));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

/// An option about a file is a mistake without the file.
void check_needs(const po::variables_map& values, const char* file, std::initializer_list<const char*> names,
                 ErrorList& errors) {
  for (const char* name : names) {
    if (values[name].defaulted() || values.count(name) == 0 || values.count(file) != 0) continue;
    errors.add(command_line_error(std::string{"--"} + name + ": nothing is recorded",
                                  std::string{"expected --"} + file + " FILE with it"));
  }
}

std::unique_ptr<AtomicFile> open_file(const char* option, const std::string& path, ErrorList& errors) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) {
    errors.add(command_line_error(std::string{"--"} + option + ": " + quoted(path) + " is a directory",
                                  "expected the name of a file in it"));
    return nullptr;
  }
  auto file = std::make_unique<AtomicFile>(path);
  const auto error = file->open();
  if (!error) return file;
  errors.add(*error);
  return nullptr;
}

}  // namespace

void add_recording_options(po::options_description& options) {
  options.add_options()("timeline", po::value<std::string>(),
                        "what each unit did when, a file for ui.perfetto.dev (Chrome trace events)")(
      "timeline-window", po::value<std::string>(), "FROM..TO: only what overlaps this simulated time")(
      "timeline-sample", po::value<std::string>()->default_value("1"), "only every so manieth put or get")(
      "timeline-limit", po::value<std::string>()->default_value(std::to_string(Timeline::Options{}.limit)),
      "most events in the file; nothing later is drawn")("pcap", po::value<std::string>(),
                                                         "packets at the NICs, a pcapng file for Wireshark")(
      "pcap-nodes", po::value<std::string>(), "only at these nodes: 0,3,8-15")(
      "pcap-limit", po::value<std::string>()->default_value(std::to_string(PacketCapture::Options{}.limit)),
      "most packets in the file; later ones are counted")(
      "pcap-snaplen", po::value<std::string>()->default_value(std::to_string(PacketCapture::kMostSnapBytes)),
      "most bytes that are kept of a packet");
}

RecordingOptions read_recording_options(const po::variables_map& values, ErrorList& errors) {
  RecordingOptions options;
  if (values.count("timeline") != 0) options.timeline = values["timeline"].as<std::string>();
  if (values.count("pcap") != 0) options.pcap = values["pcap"].as<std::string>();
  for (const char* name : {"timeline", "pcap"}) {
    if (values.count(name) == 0 || !values[name].as<std::string>().empty()) continue;
    errors.add(command_line_error(std::string{"--"} + name + ": no file", "expected its name"));
  }
  if (!options.timeline.empty() && options.timeline == options.pcap) {
    errors.add(command_line_error("--pcap: the same file as that of --timeline", "expected another"));
  }
  check_needs(values, "timeline", {"timeline-window", "timeline-sample", "timeline-limit"}, errors);
  check_needs(values, "pcap", {"pcap-nodes", "pcap-limit", "pcap-snaplen"}, errors);
  constexpr std::uint64_t kMost = 1'000'000'000;
  if (values.count("timeline-window") != 0) {
    read_window(values["timeline-window"].as<std::string>(), options.timeline_options, errors);
  }
  options.timeline_options.sample = number(values, "timeline-sample", 1, kMost, errors).value_or(1);
  options.timeline_options.limit = number(values, "timeline-limit", kLeastEvents, kMost, errors).value_or(kMost);
  if (values.count("pcap-nodes") != 0) {
    read_nodes(values["pcap-nodes"].as<std::string>(), options.pcap_options.nodes, errors);
  }
  options.pcap_options.limit = number(values, "pcap-limit", 1, kMost, errors).value_or(kMost);
  options.pcap_options.snap_bytes = static_cast<std::uint32_t>(
      number(values, "pcap-snaplen", kLeastSnapBytes, PacketCapture::kMostSnapBytes, errors).value_or(kLeastSnapBytes));
  return options;
}

void Recording::open(std::uint32_t nodes, ErrorList& errors) {
  nodes_ = nodes;
  const std::vector<NodeId>& watched = options_.pcap_options.nodes;
  if (!watched.empty() && watched.back().value() >= nodes) {
    errors.add(command_line_error("--pcap-nodes: there is no node " + std::to_string(watched.back().value()),
                                  "expected 0 to " + std::to_string(nodes - 1)));
  }
  if (!options_.timeline.empty()) timeline_file_ = open_file("timeline", options_.timeline, errors);
  if (!options_.pcap.empty()) pcap_file_ = open_file("pcap", options_.pcap, errors);
}

void Recording::attach(PutRegistry& registry, const Trace& trace, const Config& config, TimelineRun run,
                       ObserverList& observers) {
  if (!timeline_file_ && !pcap_file_) return;
  run_ = std::move(run);
  if (timeline_file_) {
    timeline_ = std::make_unique<Timeline>(options_.timeline_options, registry, trace);
    observers.add(*timeline_);
  }
  if (pcap_file_) {
    capture_ = std::make_unique<PacketCapture>(pcap_file_->stream(), options_.pcap_options, nodes_,
                                               config.fabric.link.rate.get());
    observers.add(*capture_);
  }
  last_words_ = std::make_unique<LastWords>([this](const std::string& why) { save({why}); });
}

void Recording::write(Time end, const std::vector<std::string>& problems) {
  last_words_.reset();
  if (timeline_) {
    run_.end = end;
    run_.problems = problems;
    timeline_->finish(end);
    write_timeline(timeline_file_->stream(), *timeline_, run_);
  }
  if (capture_) capture_->finish(end, problems.empty() ? std::string{} : problems.front());
  is_written_ = true;
}

std::vector<std::string> Recording::finish(Time end, const std::vector<std::string>& problems, ErrorList& errors) {
  std::vector<std::string> notes;
  if (!timeline_ && !capture_) return notes;
  write(end, problems);
  for (AtomicFile* file : {timeline_file_.get(), pcap_file_.get()}) {
    if (file == nullptr) continue;
    if (const auto error = file->commit()) errors.add(*error);
  }
  if (timeline_ && timeline_->is_full()) {
    notes.push_back("--timeline: its limit of " + std::to_string(options_.timeline_options.limit) +
                    " events was reached at " + to_string(timeline_->full_at()) +
                    "; --timeline-window or --timeline-sample choose other ones");
  }
  if (capture_ && capture_->dropped() > 0) {
    notes.push_back("--pcap: " + std::to_string(capture_->dropped()) + " of " + std::to_string(capture_->seen()) +
                    " packets came after its limit of " + std::to_string(options_.pcap_options.limit));
  }
  return notes;
}

/// As much as can be: the run has failed within.
void Recording::save(const std::vector<std::string>& problems) {
  if (is_written_ || (!timeline_ && !capture_)) return;
  ErrorList nobody_asks;
  finish(SimContext::now(), problems, nobody_asks);
}

Recording::~Recording() {
  try {
    save({"the run has failed: nothing later is known"});
  } catch (...) {  // NOLINT(bugprone-empty-catch): there is no memory left; the partial files go
  }
}

}  // namespace rvma::cli
