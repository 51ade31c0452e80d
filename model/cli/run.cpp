// rvma run: one trace, simulated, checked and reported.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/heap.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/no_effect.hpp"
#include "cli/recording.hpp"
#include "cli/shared_files.hpp"
#include "cli/table_options.hpp"
#include "platform/config.hpp"
#include "platform/system.hpp"
#include "report/atomic_file.hpp"
#include "report/limits.hpp"
#include "report/links_csv.hpp"
#include "report/message_log.hpp"
#include "report/progress.hpp"
#include "report/recorder.hpp"
#include "report/recovery_log.hpp"
#include "report/run_report.hpp"
#include "report/scoreboard.hpp"
#include "report/series.hpp"
#include "report/settle_clock.hpp"
#include "rtl/adapter/table_factory.hpp"
#include "workload/player.hpp"
#include "workload/trace.hpp"

namespace rvma::cli {
namespace po = boost::program_options;
namespace {

/// Waves of the last cycles before the Verilog table and the C++ one differed.
constexpr const char* kDifferenceWaves = "table-difference.fst";

struct RunOptions {
  std::string trace;
  std::string config_file;
  std::vector<std::string> sets;
  std::string out_dir;
  bool check = false;
  bool quiet = false;
  bool progress = false;
  std::optional<std::uint64_t> seed;
  std::optional<Time> limit;
  std::optional<Time> wall_limit;
  TableOptions table;
  RecordingOptions recording;
  Protocol protocol = Protocol::rvma;
  std::optional<Bytes> memory_limit;
};

/// `rvma compare` also runs a NIC that does not track.
constexpr std::string_view kExpectOfCompare =
    "compare also runs a NIC that does not: expected another completion (auto takes this one where it can), or "
    "rvma run --protocol rdma --set rdma.ooo_tracking=on";

volatile std::sig_atomic_t stop_asked = 0;
extern "C" void ask_to_stop(int /*signal*/) { stop_asked = 1; }

po::options_description describe_options() {
  po::options_description options("rvma run TRACE [options]\n\nOptions");
  options.add_options()("help,h", "list these options")("trace", po::value<std::string>(), "the trace; - is stdin")(
      "config", po::value<std::string>(), "configuration file (JSON, comments allowed), or the name of a preset")(
      "set", po::value<std::vector<std::string>>()->composing(), "KEY=VALUE: overrides one configuration key")(
      "out", po::value<std::string>(), "directory for stats.json and the CSV files; created if missing")(
      "check", "hold every completion and every byte against the trace; exit status 1 on a failure")(
      "quiet", "print no summary")("seed", po::value<std::string>(), "seed of all random choices (workload.seed)")(
      "limit", po::value<std::string>(), "stop after this simulated time; results are marked partial")(
      "wall-limit", po::value<std::string>(), "stop after this time on the clock; results are marked partial")(
      "memory-limit", po::value<std::string>(),
      "stop when the program holds so much memory; results are marked partial (default: 7/8 of the machine's)")(
      "progress", "print progress to stderr (automatic on a terminal)")(
      "protocol", po::value<std::string>()->default_value("rvma"),
      "rvma, or rdma: the same calls by software on the RDMA baseline's NIC");
  add_table_options(options);
  add_recording_options(options);
  return options;
}

Protocol read_protocol(const po::variables_map& values, ErrorList& errors) {
  const auto parsed = ValueText<Protocol>::parse(values["protocol"].as<std::string>());
  if (parsed) return *parsed;
  errors.add(command_line_error("--protocol: " + parsed.error().what, parsed.error().expected));
  return Protocol::rvma;
}

std::optional<Time> time_option(const po::variables_map& values, const char* name, ErrorList& errors) {
  if (values.count(name) == 0) return std::nullopt;
  const auto parsed = parse_time(values[name].as<std::string>());
  if (parsed) return *parsed;
  errors.add(command_line_error(std::string{"--"} + name + ": " + parsed.error().what, parsed.error().expected));
  return std::nullopt;
}

RunOptions read_options(const po::variables_map& values, const char* command, ErrorList& errors) {
  RunOptions options;
  if (values.count("trace") == 0) {
    errors.add(command_line_error("no trace given", std::string{"expected rvma "} + command + " TRACE"));
  } else {
    options.trace = values["trace"].as<std::string>();
  }
  if (values.count("config") != 0) options.config_file = config_file(values["config"].as<std::string>());
  if (values.count("set") != 0) options.sets = values["set"].as<std::vector<std::string>>();
  if (values.count("out") != 0) options.out_dir = values["out"].as<std::string>();
  options.check = values.count("check") != 0;
  options.quiet = values.count("quiet") != 0;
  // --quiet silences stdout; on a terminal it speaks for stderr, too, unless progress is asked for.
  options.progress = values.count("progress") != 0 || (!options.quiet && isatty(STDERR_FILENO) == 1);
  if (values.count("seed") != 0) {
    const auto seed = parse_integer(values["seed"].as<std::string>(), ~std::uint64_t{0}, "seed");
    if (seed) {
      options.seed = *seed;
    } else {
      errors.add(command_line_error("--seed: " + seed.error().what, seed.error().expected));
    }
  }
  options.limit = time_option(values, "limit", errors);
  options.wall_limit = time_option(values, "wall-limit", errors);
  options.table = read_table_options(values, errors);
  options.recording = read_recording_options(values, errors);
  for (const auto& [option, file] :
       {std::pair{"timeline", options.recording.timeline}, {"pcap", options.recording.pcap}}) {
    keep_inputs(option, file, {options.trace, options.config_file}, errors);
  }
  if (values.count("memory-limit") != 0) {
    const auto size = parse_size(values["memory-limit"].as<std::string>());
    if (size) {
      options.memory_limit = *size;
    } else {
      errors.add(command_line_error("--memory-limit: " + size.error().what, size.error().expected));
    }
  }
  options.protocol = read_protocol(values, errors);
  if (options.protocol == Protocol::rdma && options.table.kind != TableKind::model) {
    errors.add(command_line_error("--table: the RDMA baseline has no translation table", "expected --protocol rvma"));
  }
  return options;
}

void resolve_config(const RunOptions& options, Config& config, ErrorList& errors) {
  const std::vector<KeyRef> keys = keys_of(config);
  if (!options.config_file.empty()) load_config(options.config_file, keys, errors);
  for (const std::string& assignment : options.sets) apply_set(assignment, keys, errors);
  if (options.seed) config.workload.seed = *options.seed;
}

/// What the options alone set, without the file.
Config set_alone(const RunOptions& options) {
  Config own;
  ErrorList told;  // resolve_config() has told them
  for (const std::string& assignment : options.sets) apply_set(assignment, keys_of(own), told);
  return own;
}

/// `rvma compare` runs both kinds of NIC. A --set is typed for this command and is a mistake; a file may be others',
/// too.
void fix_tracking(const RunOptions& options, bool tracks_order, Config& config, ErrorList& errors) {
  if (set_alone(options).rdma.ooo_tracking.set_by_user()) {
    errors.add(command_line_error("rdma.ooo_tracking: compare runs a NIC without it and one with it",
                                  "expected no such --set"));
  } else if (config.rdma.ooo_tracking.set_by_user() && options.protocol == Protocol::rdma && !tracks_order) {
    std::cerr << "rvma: warning: rdma.ooo_tracking has no effect here: compare runs a NIC without it and one with it\n";
  }
  config.rdma.ooo_tracking = tracks_order;
}

/// Keys that the user set for a protocol that does not run. A preset is meant for both.
std::vector<std::string> set_for_other_protocol(const RunOptions& options, Config& config) {
  if (!is_preset(options.config_file)) return keys_of_other_protocol(config, options.protocol);
  Config own = set_alone(options);
  return keys_of_other_protocol(own, options.protocol);
}

/// The files of --out; all appear under their names at once, when the run is over.
struct ResultFiles {
  std::unique_ptr<AtomicFile> completions;
  std::unique_ptr<AtomicFile> puts;
  std::unique_ptr<AtomicFile> calls;
  std::unique_ptr<AtomicFile> links;
  std::unique_ptr<AtomicFile> series;
  std::unique_ptr<AtomicFile> stats;
  std::unique_ptr<AtomicFile> messages;  ///< null: the trace has none

  bool open(const std::string& directory, bool has_messages, ErrorList& errors) {
    std::error_code failure;
    std::filesystem::create_directories(directory, failure);
    if (failure) {
      errors.add(command_line_error("--out: cannot create " + quoted(directory) + ": " + failure.message()));
      return false;
    }
    const auto make = [&](const char* name) -> std::unique_ptr<AtomicFile> {
      auto file = std::make_unique<AtomicFile>(directory + "/" + name);
      if (const auto error = file->open()) {
        errors.add(*error);
        return nullptr;
      }
      return file;
    };
    completions = make("completions.csv");
    puts = make("puts.csv");
    calls = make("calls.csv");
    links = make("links.csv");
    series = make("series.csv");
    stats = make("stats.json");
    if (has_messages) messages = make("messages.csv");
    return errors.empty();
  }
  bool commit(ErrorList& errors) {
    for (AtomicFile* file :
         {completions.get(), puts.get(), calls.get(), links.get(), series.get(), stats.get(), messages.get()}) {
      if (file == nullptr) continue;
      if (const auto error = file->commit()) errors.add(*error);
    }
    return errors.empty();
  }
  RunRecorder::Files streams() {
    if (!stats) return {};
    return {&completions->stream(), &puts->stream(), &calls->stream()};
  }
};

/// What this process holds now; 0 if the machine does not say.
std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total_pages = 0;
  std::uint64_t resident_pages = 0;
  if (!(statm >> total_pages >> resident_pages)) return 0;
  return resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// 7/8 of what this process may have: of the machine's memory, of its control group's, of its address space.
std::uint64_t default_memory_limit() {
  std::uint64_t most = ~std::uint64_t{0};
  const long pages = sysconf(_SC_PHYS_PAGES);
  if (pages > 0) most = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  for (const char* name : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(name);
    std::uint64_t limit = 0;
    if (file >> limit) most = std::min(most, limit);
  }
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    most = std::min<std::uint64_t>(most, space.rlim_cur);
  }
  return most / 8 * 7;
}

std::uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

/// Why a run stops before it is over.
enum class End { starved, limit, longest, wall_limit, memory_limit, signal, mistake, stopped };

/// Watches what may end a run from outside. Asked from within the simulation as well, where one operation may take
/// long.
class Watch {
 public:
  explicit Watch(const RunOptions& options)
      : options_(options),
        began_(Clock::now()),
        memory_limit_(options.memory_limit ? options.memory_limit->count() : default_memory_limit()) {}

  /// The signal alone costs nothing to look at; the clock and memory are looked at each kEvery-th time.
  bool must_stop() {
    if (stop_asked != 0) return true;
    if (++asked_ % kEvery != 0) return reason_ != End::starved;
    return reason() != End::starved;
  }
  /// End::starved: none.
  End reason() {
    if (reason_ != End::starved) return reason_;
    if (stop_asked != 0) {
      reason_ = End::signal;
    } else if (options_.wall_limit && elapsed_ns() >= options_.wall_limit->ps() / 1000) {
      reason_ = End::wall_limit;
    } else if (const std::int64_t now = elapsed_ns(); now >= next_look_ns_) {
      next_look_ns_ = now + kLookNs;
      if (resident_bytes() >= memory_limit_) reason_ = End::memory_limit;
    }
    return reason_;
  }
  std::int64_t elapsed_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - began_).count();
  }
  std::uint64_t memory_limit() const { return memory_limit_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kEvery = 64;
  static constexpr std::int64_t kLookNs = 10'000'000;  ///< between looks at memory, which cost a system call

  const RunOptions& options_;
  Clock::time_point began_;
  std::uint64_t memory_limit_;
  std::uint64_t asked_ = 0;
  std::int64_t next_look_ns_ = 0;
  End reason_ = End::starved;
};

/// Lets simulated time pass until nothing is left to happen, a limit is reached or the user asks to stop.
class Clockwork {
 public:
  Clockwork(const RunOptions& options, Watch& watch, const Player& player, Progress& progress)
      : watch_(watch), player_(player), progress_(progress), limit_(kLongestRun), limit_end_(End::longest) {
    if (!options.limit || *options.limit > kLongestRun) return;
    limit_ = *options.limit;
    limit_end_ = End::limit;
  }

  /// `is_over` says that what happens from `next` on, and nothing before, is nobody's concern any more.
  void on_idle(std::function<bool(Time next)> is_over) { is_over_ = std::move(is_over); }

  /// Samples are taken between slices.
  void sample(Series& series) { series_ = &series; }

  End run() {
    std::signal(SIGINT, ask_to_stop);
    std::signal(SIGTERM, ask_to_stop);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);  // elaborates, and starts the programs
    Time slice = kLongestSlice;
    while (true) {
      if (player_.mistake()) return End::mistake;
      if (sc_core::sc_get_status() == sc_core::SC_STOPPED) return End::stopped;
      if (const End reason = watch_.reason(); reason != End::starved) return reason;
      const std::int64_t began_ns = watch_.elapsed_ns();
      progress_.update(SimContext::now(), static_cast<std::uint64_t>(began_ns));
      if (!sc_core::sc_pending_activity()) return End::starved;
      // A slice that begins at the next event: idle time is skipped, not stepped through.
      const Time next = Time::from_ps(static_cast<std::int64_t>(sc_core::sc_time_to_pending_activity().value()));
      if (is_over_ && is_over_(SimContext::now() + next)) return End::starved;
      if (series_ != nullptr) series_->advance(std::min(SimContext::now() + next, limit_));
      const Time left = limit_ - SimContext::now();
      if (next > left) {
        // Nothing happens until then, but the time has been simulated.
        if (left > Time::zero()) sc_core::sc_start(SimContext::to_sc(left), sc_core::SC_RUN_TO_TIME);
        return limit_end_;
      }
      Time step = std::max(std::min(next + slice, left), Time::from_ps(1));
      if (series_ != nullptr) step = std::max(std::min(step, series_->next() - SimContext::now()), Time::from_ps(1));
      sc_core::sc_start(SimContext::to_sc(step), sc_core::SC_EXIT_ON_STARVATION);
      // Limits of the machine are looked at between slices: none may last long, however much happens in it.
      const std::int64_t took_ns = watch_.elapsed_ns() - began_ns;
      if (took_ns > kSlowSliceNs) slice = std::max(Time::from_ps(slice.ps() / 2), kShortestSlice);
      if (took_ns < kSlowSliceNs / 4) slice = std::min(slice * 2, kLongestSlice);
    }
  }

 private:
  static constexpr Time kLongestSlice = Time::from_us(200);
  static constexpr Time kShortestSlice = Time::from_ns(100);
  static constexpr std::int64_t kSlowSliceNs = 100'000'000;

  Watch& watch_;
  const Player& player_;
  Progress& progress_;
  std::function<bool(Time)> is_over_;
  Series* series_ = nullptr;
  Time limit_;
  End limit_end_;
};

/// What is built before time begins is built whole: what can never fit is an error before anything is.
void check_memory(const RunOptions& options, const Config& config, std::uint32_t ranks, ErrorList& errors) {
  const std::uint64_t limit = options.memory_limit ? options.memory_limit->count() : default_memory_limit();
  const Footprint all = footprint(config, ranks);
  if (all.least.count() <= limit) return;
  errors.add(command_line_error(
      fmt::format("--memory-limit: {} nodes, {} switches and {} cables take at least {}, and the limit is {}",
                  all.nodes, all.switches, all.cables, to_string(all.least), to_string(Bytes{limit})),
      "a smaller fabric, or more ranks a node"));
}

/// From here on a run is one of many nodes: what they cost the machine is seen to.
constexpr std::size_t kManyNodes = 64;
#ifdef __SANITIZE_ADDRESS__
constexpr bool kLooksForLeaks = true;
#else
constexpr bool kLooksForLeaks = false;
#endif
/// Bytes that a node with many neighbours takes, roughly.
constexpr std::size_t kHeapOfANode = 200'000;

class Run {
 public:
  Run(const RunOptions& options, const Config& config, const Trace& trace, ResultFiles& files,
      std::unique_ptr<Recording> recording)
      : options_(options),
        config_(config),
        trace_(trace),
        context_(config.workload.seed),
        with_bytes_(config.workload.payload.get() == PayloadMode::bytes),
        writes_(!options.out_dir.empty()),
        registry_(options.protocol == Protocol::rdma),
        recorder_(trace, registry_, files.streams(), with_bytes_ ? buffer_reader() : RunRecorder::ReadBuffer{},
                  [this](Time when) { wake_at(when); }),
        recording_(std::move(recording)),
        limits_(context_.stats()),
        watch_(options),
        progress_(options.progress, trace.total_operations(), recorder_) {
    if (writes_) {
      context_.stats().keep_levels();
      series_ = std::make_unique<Series>(context_.stats(), recorder_);
    }
    nic_observers_.add(registry_);
    nic_observers_.add(recorder_);
    recording_->attach(registry_, trace, config, timeline_run(), nic_observers_);
    if (series_) nic_observers_.add(*series_);
    const std::vector<FaultEvent>& events = config.fabric.faults.events->events;
    if (std::any_of(events.begin(), events.end(),
                    [](const FaultEvent& e) { return e.kind == FaultKind::node_crash; })) {
      recovery_log_ = std::make_unique<RecoveryLog>(config.nic.history);
      nic_observers_.add(*recovery_log_);
    }
    std::vector<PlayerObserver*> player_observers{&recorder_, &limits_};
    if (options.check) {
      scoreboard_ = std::make_unique<Scoreboard>(
          registry_,
          Scoreboard::Host{buffer_reader(),
                           [this](NodeId node, PhysicalAddress word) { return system_->load64(node, word); },
                           [this](Time when) { wake_at(when); }},
          static_cast<std::uint32_t>(config.nic.mtu->count()), with_bytes_);
      nic_observers_.add(*scoreboard_);
      player_observers.push_back(scoreboard_.get());
    }
    if (trace.has_messages()) {
      MessageLog::Fail fail;
      if (scoreboard_) fail = [this](Time at, const std::string& what) { scoreboard_->add_failure(at, what); };
      message_log_ = std::make_unique<MessageLog>(trace, files.messages ? &files.messages->stream() : nullptr,
                                                  with_bytes_ ? buffer_reader() : RunRecorder::ReadBuffer{}, fail);
      player_observers.push_back(message_log_.get());
    }
    if (writes_ || options.check) {
      settle_clock_ = std::make_unique<SettleClock>("results", context_);
      settle_clock_->on_settle([this](Time now) {
        if (scoreboard_) scoreboard_->settle(now);
        if (writes_) recorder_.settle(now);
      });
    }
    system_ = std::make_unique<System>(context_, config, trace.ranks(), nic_observers_, &recorder_, table_factory(),
                                       options.protocol);
    std::vector<RankHome> homes;
    for (std::uint32_t r = 0; r < trace.ranks(); ++r) {
      const RankId rank{r};
      homes.push_back({system_->node_of(rank), system_->pid_of(rank), &system_->driver(rank)});
    }
    player_ = std::make_unique<Player>(trace, config.workload, config.nic.history, homes, player_observers);
    player_->on_interruption([this] { return watch_.must_stop(); });
    for (std::uint32_t r = 0; r < trace.ranks(); ++r) start(RankId{r});
    system_->on_node_events([this](NodeId node) { each_rank(node, [this](RankId rank) { player_->crashed(rank); }); },
                            [this](NodeId node) {
                              each_rank(node, [this](RankId rank) {
                                if (!player_->has_restart(rank)) return;
                                player_->prepare_restart(rank, system_->driver(rank));
                                start(rank);
                              });
                            });
  }

  /// Runs to the end and fills `report`; its pointers are valid as long as this object.
  void execute(RunReport& report) {
    Clockwork clockwork(options_, watch_, *player_, progress_);
    clockwork.on_idle([this](Time next) { return is_over(next); });
    if (series_) clockwork.sample(*series_);
    const auto began = std::chrono::steady_clock::now();
    const End end = clockwork.run();
    if (end == End::starved && system_->drained_at() > SimContext::now()) {
      sc_core::sc_start(SimContext::to_sc(system_->drained_at() - SimContext::now()), sc_core::SC_RUN_TO_TIME);
    }
    report.wall_ns = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - began).count());
    progress_.finish();

    const Time now = SimContext::now();
    report.end = now;
    if (series_) series_->finish(now);
    // A refused post of a program that made no later call: its answer lies in memory.
    for (std::uint32_t r = 0; r < trace_.ranks(); ++r) system_->driver(RankId{r}).take_answers();
    recorder_.finish(now, system_->losses());
    if (message_log_) message_log_->finish();
    judge(end, report);
    for (std::string& problem : waves_.close()) report.problems.push_back(std::move(problem));
    if (scoreboard_) {
      scoreboard_->finish(now, recorder_.totals(), end == End::starved);
      if (!scoreboard_->passed()) {
        report.problems.push_back("check: " + std::to_string(scoreboard_->failure_count()) + " failures");
      }
    }
    describe(report);
  }

  /// After execute(). A line for each record that does not have everything.
  std::vector<std::string> write_recording(const RunReport& report, ErrorList& errors) {
    return recording_->finish(report.end, report.problems, errors);
  }
  void write_links(std::ostream& out) const { write_links_csv(out, system_->fabric(), SimContext::now()); }
  void write_series(std::ostream& out) const { series_->write(out); }

 private:
  TimelineRun timeline_run() const {
    TimelineRun run;
    run.trace = options_.trace;
    run.protocol = ValueText<Protocol>::print(options_.protocol);
    run.is_rdma = options_.protocol == Protocol::rdma;
    run.ranks = trace_.ranks();
    run.ranks_per_node = config_.workload.ranks_per_node;
    return run;
  }
  void start(RankId rank) {
    system_->run_on(rank, [this, rank](Driver&) { player_->play(rank); });
  }
  template <class Call>
  void each_rank(NodeId node, Call&& call) {
    for (std::uint32_t r = 0; r < trace_.ranks(); ++r) {
      if (system_->node_of(RankId{r}) == node) call(RankId{r});
    }
  }
  /// All programs have ended, nothing is under way, and what comes next is a crash or a restart that starts nothing.
  bool is_over(Time next) const {
    if (system_->packets_in_flight() > 0 || player_->ranks_finished() < trace_.ranks()) return false;
    const std::vector<FaultEvent> events = system_->node_events_to_come();
    if (events.empty() || events.front().at != next || !registry_.open().empty()) return false;
    const auto& blocks = trace_.restart_blocks();
    return std::none_of(events.begin(), events.end(), [&](const FaultEvent& event) {
      return event.kind == FaultKind::node_restart && std::any_of(blocks.begin(), blocks.end(), [&](const auto& block) {
               return system_->node_of(block.first) == node_of(event);
             });
    });
  }
  TableUnitFactory table_factory() {
    if (options_.table.kind == TableKind::model) return &ModelTableUnit::make;
    RtlTableOptions table;
    table.lockstep = options_.table.kind == TableKind::both;
    table.flip_at_lookup = options_.table.flip_at_lookup;
    table.waves = options_.table.wave;
    table.waves_opened = [this](const std::string& path, VerilatedTable& writer) { waves_.add(path, writer); };
    table.difference_waves = (options_.out_dir.empty() ? std::string{} : options_.out_dir + "/") + kDifferenceWaves;
    table.differs = [this](const std::string& unit, const std::string& waves,
                           const LockstepTableCore::Difference& difference) {
      // The first one is what matters.
      if (!table_difference_.empty()) return;
      table_difference_ = describe_difference(unit, waves, difference);
      sc_core::sc_stop();
    };
    return rtl_table_factory(std::move(table));
  }
  RunRecorder::ReadBuffer buffer_reader() {
    return [this](NodeId node, Pid pid, VirtualAddress from, std::uint64_t bytes, std::vector<std::uint8_t>& to) {
      system_->read(node, pid, from, bytes, to);
    };
  }
  void wake_at(Time when) {
    if (settle_clock_) settle_clock_->wake_at(when);
  }

  void judge(End end, RunReport& report) {
    switch (end) {
      case End::starved:
        for (const std::string& line : player_->waiting()) report.problems.push_back(line);
        break;
      case End::limit:
        report.problems.push_back("--limit reached at " + to_string(SimContext::now()) + ": results are partial");
        break;
      case End::longest:
        report.problems.push_back("simulated time reached " + to_string(kLongestRun) +
                                  ", the longest that a run may last: results are partial");
        break;
      case End::memory_limit:
        report.problems.push_back("--memory-limit reached (" + to_string(Bytes{watch_.memory_limit()}) +
                                  "): results are partial; smaller puts and buffers, or fewer at a time, need less");
        break;
      case End::mistake:
        report.problems.push_back(player_->mistake()->to_string());
        break;
      case End::wall_limit:
        report.problems.emplace_back("--wall-limit reached: results are partial");
        break;
      case End::signal:
        report.problems.emplace_back("stopped by a signal: results are partial");
        break;
      case End::stopped:
        report.problems.push_back(table_difference_ + "stopped there: results are partial");
        break;
    }
    if (options_.table.flip_at_lookup && table_difference_.empty()) {
      report.problems.emplace_back(
          "--table-flip: no bit was flipped, as no node's table had so many lookups and a hit");
    }
    report.partial = end != End::starved;
    if (!report.partial && recorder_.operations() == 0) report.problems.emplace_back("no operation was executed");
  }

  void describe(RunReport& report) {
    report.trace = options_.trace;
    report.topology = ValueText<Topology>::print(system_->fabric().topology());
    report.ranks = trace_.ranks();
    report.nodes = system_->nodes();
    report.seed = config_.workload.seed;
    Config copy = config_;
    report.config = config_to_json(keys_of(copy));
    report.cycles = static_cast<std::uint64_t>(ClockDomain(config_.nic.clock).edge_at_or_after(report.end).count());
    report.events = context_.notifications();
    report.activations = context_.activations();
    report.peak_rss_bytes = peak_rss_bytes();
    report.recorder = &recorder_;
    report.scoreboard = scoreboard_.get();
    if (recovery_log_) recovery_log_->finish();
    report.recovery = recovery_log_.get();
    report.stats = &context_.stats();
    report.on_chip = on_chip_bytes(config_.nic);
    report.states =
        nic_states(context_.stats(), {config_.nic, options_.protocol == Protocol::rdma ? &config_.rdma : nullptr,
                                      trace_.ranks(), config_.workload.ranks_per_node});
    report.limits = limits_.limits(recorder_.region());
    report.stalls = limits_.stalls(recorder_.region());
    report.waits = stage_waits(context_.stats());
    report.refusals = most_refusals(context_.stats());
    report.bottleneck = find_bottleneck(report.limits, recorder_.breakdown(), report.waits, report.stalls,
                                        report.refusals, recorder_.totals().messages_opened);
    std::vector<Limit> widened = report.limits;
    widened.insert(widened.end(), report.stalls.begin(), report.stalls.end());
    report.key_ranges = ranges_of_widening_keys(widened, keys_of(copy));
    report.out_dir = options_.out_dir;
  }

  const RunOptions& options_;
  const Config& config_;
  const Trace& trace_;
  SimContext context_;
  bool with_bytes_;
  bool writes_;
  PutRegistry registry_;
  RunRecorder recorder_;
  std::unique_ptr<Recording> recording_;  ///< asks the registry until it goes
  LimitsObserver limits_;
  std::unique_ptr<Series> series_;  ///< null without --out
  Watch watch_;
  Progress progress_;
  std::unique_ptr<Scoreboard> scoreboard_;
  std::unique_ptr<RecoveryLog> recovery_log_;  ///< null: no node is told to crash
  std::unique_ptr<MessageLog> message_log_;    ///< null: the trace has no messages
  std::unique_ptr<SettleClock> settle_clock_;
  ObserverList nic_observers_;
  std::unique_ptr<System> system_;
  std::unique_ptr<Player> player_;
  OpenWaves waves_;
  std::string table_difference_;  ///< between the Verilog table and the C++ one: ends the run
};

/// Restart blocks of ranks whose node never restarts.
std::vector<std::string> restart_blocks_without_effect(const Config& config, const Trace& trace) {
  std::vector<std::string> warnings;
  const std::vector<FaultEvent>& events = config.fabric.faults.events->events;
  for (const auto& [rank, place] : trace.restart_blocks()) {
    const NodeId node{rank.value() / config.workload.ranks_per_node.get()};
    const bool runs = std::any_of(events.begin(), events.end(), [node = node](const FaultEvent& event) {
      return event.kind == FaultKind::node_restart && node_of(event) == node;
    });
    if (runs) continue;
    warnings.push_back(place.source + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) +
                       ": warning: the restart block of rank " + std::to_string(rank.value()) +
                       " never runs: fabric.faults.events has no node_restart of node " + std::to_string(node.value()));
  }
  return warnings;
}

int report_errors(const ErrorList& errors) {
  errors.print(std::cerr);
  return kBadInput;
}

/// `tracks_order`: of a run of `rvma compare`, whether its RDMA NIC does.
int run(const std::vector<std::string>& arguments, std::optional<bool> tracks_order) {
  const bool is_compared = tracks_order.has_value();
  // 1. What is asked for.
  const po::options_description described = describe_options();
  po::variables_map values;
  Error usage;
  ErrorList errors;
  if (!parse(arguments, described, {"trace"}, values, usage)) {
    errors.add(usage);
    return report_errors(errors);
  }
  if (values.count("help") != 0) {
    std::cout << described << "\n";
    return kFine;
  }
  const RunOptions options = read_options(values, is_compared ? "compare" : "run", errors);
  Config config;
  resolve_config(options, config, errors);
  if (is_compared) fix_tracking(options, *tracks_order, config, errors);
  if (!errors.empty()) return report_errors(errors);

  // 2. The trace, and whether this machine can run it.
  const std::unique_ptr<Trace> trace = Trace::open(options.trace, errors);
  if (!trace) return report_errors(errors);
  validate(config, trace->ranks(), errors);
  if (errors.empty() && options.protocol == Protocol::rdma) {
    validate_rdma(config, trace->ranks(), errors, is_compared ? kExpectOfCompare : kExpectTracking);
  }
  // Of a table that cannot be, there is no shape to be built.
  if (errors.empty() && options.table.kind != TableKind::model) {
    if (const auto error = check_rtl_table(config.nic.table)) errors.add(*error);
  }
  if (!errors.empty()) return report_errors(errors);
  for (const std::string& warning : trace->warnings()) std::cerr << warning << "\n";
  for (const std::string& warning : restart_blocks_without_effect(config, *trace)) std::cerr << warning << "\n";
  for (const std::string& warning : keys_without_effect(config, trace->ranks(), options.protocol)) {
    std::cerr << "rvma: warning: " << warning << "\n";
  }
  if (const auto idle = set_for_other_protocol(options, config); !idle.empty() && !is_compared) {
    std::cerr << "rvma: warning: " << describe_other_protocol(idle, options.protocol) << "\n";
  }
  check_memory(options, config, trace->ranks(), errors);
  if (!options.table.wave.empty()) check_waves(options.table.wave, config, trace->ranks(), errors);
  if (!errors.empty()) return report_errors(errors);
  auto recording = std::make_unique<Recording>(options.recording);
  recording->open((trace->ranks() + config.workload.ranks_per_node - 1) / config.workload.ranks_per_node, errors);
  if (!errors.empty()) return report_errors(errors);
  ResultFiles files;
  if (!options.out_dir.empty() && !files.open(options.out_dir, trace->has_messages(), errors))
    return report_errors(errors);

  // 3. Run, and tell.
  const std::size_t nodes = trace->ranks() / config.workload.ranks_per_node;
  if (nodes >= kManyNodes) reserve_heap(nodes * kHeapOfANode);
  auto whole = std::make_unique<Run>(options, config, *trace, files, std::move(recording));
  Run& run = *whole;
  RunReport report;
  run.execute(report);
  const std::vector<std::string> notes = run.write_recording(report, errors);
  if (!errors.empty()) return report_errors(errors);
  if (!options.out_dir.empty()) {
    run.write_links(files.links->stream());
    run.write_series(files.series->stream());
    write_stats_json(files.stats->stream(), report);
    if (!files.commit(errors)) return report_errors(errors);
  }
  if (!options.quiet) print_summary(std::cout, report);
  for (const std::string& note : notes) std::cerr << "rvma: note: " << note << "\n";
  for (const std::string& problem : report.problems) std::cerr << problem << "\n";
  if (report.scoreboard != nullptr) {
    for (const std::string& failure : report.scoreboard->failures()) std::cerr << "check: " << failure << "\n";
  }
  const int status = report.problems.empty() ? kFine : kFailed;
  // Taking the modules of thousands of nodes apart takes seconds, and the process ends here.
  if (nodes >= kManyNodes && options.table.wave.empty() && !kLooksForLeaks) static_cast<void>(whole.release());
  return status;
}

}  // namespace

int run_command(const std::vector<std::string>& arguments) { return run(arguments, std::nullopt); }
int run_for_compare(const std::vector<std::string>& arguments, bool tracks_order) {
  return run(arguments, tracks_order);
}

}  // namespace rvma::cli
