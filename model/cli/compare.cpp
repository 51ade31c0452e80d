// rvma compare: the same trace on RVMA and on the RDMA baseline. Each protocol is a run of its own in a process of its
// own, because SystemC elaborates once a process; this one reads their results.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "driver/exclusive_mailbox.hpp"
#include "report/atomic_file.hpp"
#include "workload/trace_text.hpp"

namespace rvma::cli {
namespace {

namespace json = boost::json;

/// One column of the comparison.
struct Variant {
  const char* title;
  const char* directory;
  const char* protocol;
  bool tracks_order;
  std::vector<std::string> arguments;
  std::string out;
  int status = 0;
  json::value stats;
};

/// A figure of a run, as text and as a number.
using Figure = std::function<double(const json::value& stats)>;

struct Row {
  const char* name;   ///< in compare.json: unit last
  const char* label;  ///< on the screen
  int decimals;
  Figure figure;
};

// ----------------------------------------------------------------------------------------------------------- children

constexpr std::size_t kVariants = 3;
/// Added to the number of the signal that ended a child.
constexpr int kKilled = 128;

/// The children that run, for the signal handler; 0: none, or it has ended.
std::array<volatile pid_t, kVariants> running{};
static_assert(sizeof(pid_t) <= sizeof(std::sig_atomic_t), "a handler reads it whole");

/// The last signal that was passed on; 0: none.
volatile std::sig_atomic_t passed_on = 0;

/// A run that is told to stop leaves partial results, which this process then reports.
extern "C" void pass_on(int signal) {
  const int kept = errno;
  passed_on = signal;
  for (const volatile pid_t& child : running) {
    if (child > 0) kill(child, signal);
  }
  errno = kept;
}

/// While it lives, SIGINT and SIGTERM go to the children.
class PassedOnSignals {
 public:
  PassedOnSignals() {
    struct sigaction action {};
    action.sa_handler = pass_on;
    sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before_[i]);
  }
  PassedOnSignals(const PassedOnSignals&) = delete;
  PassedOnSignals& operator=(const PassedOnSignals&) = delete;
  ~PassedOnSignals() { restore(); }
  void restore() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  /// Those that come meanwhile wait.
  static void hold(bool is_held) {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : kSignals) sigaddset(&set, signal);
    sigprocmask(is_held ? SIG_BLOCK : SIG_UNBLOCK, &set, nullptr);
  }

 private:
  static constexpr std::array<int, 2> kSignals{SIGINT, SIGTERM};
  std::array<struct sigaction, kSignals.size()> before_{};
};

/// A trace on standard input, read once: each child gets a view of its own, with a position of its own.
class SharedInput {
 public:
  SharedInput() = default;
  SharedInput(const SharedInput&) = delete;
  SharedInput& operator=(const SharedInput&) = delete;
  ~SharedInput() {
    if (file_ >= 0) close(file_);
  }
  std::optional<Error> fill() {
    const auto text = trace_detail::open_text("-", "<stdin>");
    if (!text) return text.error();
    std::error_code ignored;
    std::string name = (std::filesystem::temp_directory_path(ignored) / "rvma-stdin-XXXXXX").string();
    file_ = mkstemp(name.data());
    if (file_ < 0) return no_room();
    // Without a name nothing is left of it, however this process ends.
    unlink(name.c_str());
    std::vector<char> piece(std::size_t{1} << 20U);
    std::uint64_t at = 0;
    while (const std::size_t got = (*text)->read(at, piece.data(), piece.size())) {
      for (std::size_t written = 0; written < got;) {
        const ssize_t more = write(file_, piece.data() + written, got - written);
        if (more < 0 && errno != EINTR) return no_room();
        if (more > 0) written += static_cast<std::size_t>(more);
      }
      at += got;
    }
    return std::nullopt;
  }
  /// In a child: makes it the standard input. False: could not.
  bool enter() const {
    if (file_ < 0) return true;
    const int own = open(fmt::format("/proc/self/fd/{}", file_).c_str(), O_RDONLY | O_CLOEXEC);
    return own >= 0 && dup2(own, STDIN_FILENO) >= 0;
  }

 private:
  static Error no_room() {
    return Error{Position{"<stdin>", 1, 1},
                 "cannot be kept in a temporary file: " + std::generic_category().message(errno),
                 "set TMPDIR to a directory with room"};
  }
  int file_ = -1;
};

/// Runs `rvma run` with the variant's arguments in a child; its standard error goes to a file.
pid_t start(const Variant& variant, const SharedInput& input, PassedOnSignals& signals) {
  std::cout.flush();
  std::cerr.flush();
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  signals.restore();
  // The child must not outlive this process. One that has ended before now sends no signal any more.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kInternal);
  PassedOnSignals::hold(false);
  const std::string errors = variant.out + ".stderr";
  if (std::freopen(errors.c_str(), "w", stderr) == nullptr) _exit(kInternal);
  if (!input.enter()) _exit(kInternal);
  int status = kInternal;
  try {
    status = run_for_compare(variant.arguments, variant.tracks_order);
  } catch (const std::exception& error) {
    std::cerr << "rvma: internal error: " << error.what() << "\n";
  }
  std::cerr.flush();
  std::fflush(stderr);
  _exit(status);
}

/// The exit status; of a child that a signal ended, 128 and its number.
int wait_for(std::size_t number) {
  const pid_t child = running[number];
  if (child <= 0) return kInternal;
  // Its number may be another process's as soon as it has been waited for: first it is taken off the list.
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0) {
    if (errno != EINTR) return kInternal;
  }
  running[number] = 0;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return kInternal;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kKilled + WTERMSIG(status);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// ------------------------------------------------------------------------------------------------------------ figures

double number(const json::value& value) {
  if (value.is_int64()) return static_cast<double>(value.as_int64());
  if (value.is_uint64()) return static_cast<double>(value.as_uint64());
  return value.is_double() ? value.as_double() : 0;
}

double at(const json::value& stats, const char* pointer) {
  boost::system::error_code missing;
  const json::value* found = stats.find_pointer(pointer, missing);
  return found == nullptr ? 0 : number(*found);
}

/// Adds `key` of every unit whose path ends in `unit`, digits at the end of the path's parts aside.
double sum(const json::value& value, const std::string& unit, const char* key, const std::string& path = {}) {
  if (!value.is_object()) return 0;
  double total = 0;
  const json::object& object = value.as_object();
  std::string plain = path;
  while (!plain.empty() && plain.back() >= '0' && plain.back() <= '9') plain.pop_back();
  const bool is_unit = plain.size() >= unit.size() && plain.compare(plain.size() - unit.size(), unit.size(), unit) == 0;
  if (const json::value* found = object.if_contains(key); is_unit && found != nullptr) total += number(*found);
  for (const auto& [name, child] : object) {
    total += sum(child, unit, key, path + "." + std::string{name.data(), name.size()});
  }
  return total;
}

Figure pointer(const char* path, double scale = 1) {
  return [path, scale](const json::value& stats) { return at(stats, path) * scale; };
}
Figure unit(const char* name, const char* key, double scale = 1) {
  return [name, key, scale](const json::value& stats) { return sum(stats.at("units"), name, key) * scale; };
}

double exchange_ns(const json::value& stats) {
  const double requests = sum(stats.at("units"), ".software", "requests");
  return requests == 0 ? 0 : sum(stats.at("units"), ".software", "exchange_ns") / requests;
}

/// Not a number: no program waited for a completion.
double seen_ns(const json::value& stats) {
  return at(stats, "/latency_ns/put_to_seen/count") == 0 ? std::nan("") : at(stats, "/latency_ns/put_to_seen/mean");
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"time_us", "simulated time (us)", 3, pointer("/sim/time_ns", 1e-3)},
      {"goodput_gbps", "goodput (Gb/s)", 3, pointer("/bandwidth_gbps/goodput")},
      {"put_to_completion_mean_ns", "put to completion, mean (ns)", 1, pointer("/latency_ns/put_to_completion/mean")},
      {"put_to_completion_p50_ns", "                   p50", 1, pointer("/latency_ns/put_to_completion/p50")},
      {"put_to_completion_p99_ns", "                   p99", 1, pointer("/latency_ns/put_to_completion/p99")},
      {"put_to_completion_max_ns", "                   max", 1, pointer("/latency_ns/put_to_completion/max")},
      {"put_to_seen_mean_ns", "put to seen by core, mean (ns)", 1, seen_ns},
      {"put_to_ack_p50_ns", "put to ack, p50 (ns)", 1, pointer("/latency_ns/put_to_ack/p50")},
      {"puts_ok", "puts that ended ok", 0, pointer("/totals/ended/ok")},
      {"completions", "completions", 0, pointer("/totals/completions")},
      {"data_packets", "data packets sent", 0, pointer("/totals/packets/sent")},
      {"acknowledgements", "acknowledgements", 0, pointer("/totals/packets/acknowledgements")},
      {"wire_bytes", "bytes on all links", 0, unit(".fabric", "wire_bytes")},
      {"connection_ends", "connections brought up (ends)", 0, unit(".software", "connections")},
      {"exchanges", "address exchanges", 0, unit(".software", "requests")},
      {"exchange_mean_ns", "time of an exchange, mean (ns)", 1, exchange_ns},
      {"advertisements", "buffers advertised", 0, unit(".software", "advertisements")},
      {"advertised_writes", "writes without an exchange", 0, unit(".software", "advertised_writes")},
      {"control_messages", "control messages", 0, unit(".software", "control_messages")},
      {"control_bytes", "control messages (bytes)", 0, unit(".software", "control_bytes")},
      {"pcie_up_bytes", "PCIe to the hosts (bytes)", 0, unit(".pcie", "upstream_wire_bytes")},
      {"pcie_down_bytes", "PCIe to the NICs (bytes)", 0, unit(".pcie", "downstream_wire_bytes")},
      {"nic_state_bytes", "most state of the NICs (bytes)", 0, pointer("/nic_state_bytes/all/total")},
      {"polls", "polls", 0, unit(".core", "polls")},
      {"core_waiting_us", "core time burned waiting (us)", 3, unit(".core", "burned_ns", 1e-3)},
      {"core_asleep_us", "core time asleep in waits (us)", 3, unit(".core", "asleep_ns", 1e-3)},
      {"core_software_us", "core time of the software (us)", 3, unit(".software", "busy_ns", 1e-3)},
  };
  return all;
}

// ------------------------------------------------------------------------------------------------------------- output

constexpr const char* kFirst = "{:<32}";
constexpr const char* kCell = " {:>16}";

std::string no_cell() { return fmt::format(kCell, "-"); }

std::string cell(double value, int decimals) {
  return std::isnan(value) ? no_cell() : fmt::format(" {:>16.{}f}", value, decimals);
}

bool is_partial(const Variant& variant) { return variant.stats.at("run").at("partial").as_bool(); }

/// One figure of each variant and its difference to the first one's; `-` where a run has none.
template <class HasFigure, class FigureOf>
void print_differences(std::ostream& out, const std::vector<Variant>& variants, HasFigure has, FigureOf figure) {
  for (const Variant& variant : variants) out << (has(variant) ? cell(figure(variant), 1) : no_cell());
  for (std::size_t i = 1; i < variants.size(); ++i) {
    const bool has_both = has(variants[i]) && has(variants.front());
    out << (has_both ? fmt::format(" {:>+16.1f}", figure(variants[i]) - figure(variants.front())) : no_cell());
  }
  out << "\n";
}

void print_table(std::ostream& out, const std::vector<Variant>& variants) {
  out << fmt::format(kFirst, "");
  for (const Variant& variant : variants) out << fmt::format(kCell, variant.title);
  out << "\n";
  for (const Row& row : rows()) {
    out << fmt::format(kFirst, row.label);
    for (const Variant& variant : variants) out << cell(row.figure(variant.stats), row.decimals);
    out << "\n";
  }
}

/// Mean time of each stage between a put's issue and its epoch's completion: the differences add up to the total's.
void print_stages(std::ostream& out, const std::vector<Variant>& variants) {
  const auto has = [](const Variant& variant) { return at(variant.stats, "/breakdown_ns/samples") > 0; };
  if (std::none_of(variants.begin(), variants.end(), has)) return;
  out << "Where the time of a put goes (mean, ns), and the difference to RVMA\n" << fmt::format(kFirst, "");
  for (const Variant& variant : variants) out << fmt::format(kCell, variant.title);
  for (std::size_t i = 1; i < variants.size(); ++i) out << fmt::format(kCell, "difference");
  out << "\n";
  const json::object& first = variants.front().stats.at("breakdown_ns").as_object();
  for (const auto& [name, value] : first) {
    static_cast<void>(value);
    if (name == "samples") continue;
    const std::string path = "/breakdown_ns/" + std::string{name.data(), name.size()};
    const auto figure = [&path](const Variant& variant) { return at(variant.stats, path.c_str()); };
    if (std::all_of(variants.begin(), variants.end(), [&](const Variant& v) { return figure(v) == 0; })) continue;
    out << fmt::format(kFirst, "  " + std::string{name.data(), name.size()});
    print_differences(out, variants, has, figure);
  }
  out << "In RDMA, `doorbell` is what comes before the write: connection, exchange of addresses, software.\n";
}

/// Where the time of a message of the message layer goes: parts of its way, in MessageStats.
struct Part {
  const char* name;
  const char* label;
};
constexpr std::array<Part, 8> kParts{{{"send_copy_ns", "copy at the sender"},
                                      {"credit_wait_ns", "wait for a slot"},
                                      {"handshake_ns", "rendezvous handshake"},
                                      {"transfer_ns", "transfer of the payload"},
                                      {"matching_ns", "matching"},
                                      {"late_receiver_ns", "wait for the recv"},
                                      {"receive_copy_ns", "copy at the receiver"},
                                      {"way_ns", "total"}}};

double received_messages(const json::value& stats) {
  return at(stats, "/units/messages/eager") + at(stats, "/units/messages/rendezvous");
}
/// Mean over the messages that were received.
double part_of(const json::value& stats, const Part& part) {
  const double messages = received_messages(stats);
  return messages == 0 ? 0 : at(stats, (std::string{"/units/messages/"} + part.name).c_str()) / messages;
}

/// The transfer is the NIC's (and in RDMA its software's); everything else is the message layer's, which is the same
/// code over every NIC.
void print_messages(std::ostream& out, const std::vector<Variant>& variants) {
  const auto has = [](const Variant& variant) { return received_messages(variant.stats) > 0; };
  if (std::none_of(variants.begin(), variants.end(), has)) return;
  out << "Where the time of a message goes (message layer; mean, ns), and the difference to RVMA\n";
  for (const Part& part : kParts) {
    out << fmt::format(kFirst, std::string{"  "} + part.label);
    print_differences(out, variants, has, [&part](const Variant& variant) { return part_of(variant.stats, part); });
  }
  const auto print = [&](const char* label, const char* path, double scale, int decimals) {
    out << fmt::format(kFirst, label);
    for (const Variant& variant : variants) out << cell(at(variant.stats, path) * scale, decimals);
    out << "\n";
  };
  print("messages received, eager", "/units/messages/eager", 1, 0);
  print("                   rendezvous", "/units/messages/rendezvous", 1, 0);
  print("messages of the layer itself", "/units/messages/control", 1, 0);
  print("core time of copies (us)", "/units/messages/copying_ns", 1e-3, 3);
  print("first issued to last there (us)", "/units/messages/span_ns", 1e-3, 3);
}

using CsvRow = std::map<std::string, std::string>;

/// The rows of one of a run's files, by the names of its columns; none if there is no such file.
std::vector<CsvRow> csv_of(const Variant& variant, const char* name) {
  const auto fields_of = [](const std::string& line) {
    std::vector<std::string> fields;
    std::istringstream parts(line);
    for (std::string field; std::getline(parts, field, ',');) fields.push_back(field);
    return fields;
  };
  std::vector<CsvRow> rows;
  std::ifstream file(variant.out + "/" + name);
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> columns = fields_of(line);
  while (std::getline(file, line)) {
    std::vector<std::string> fields = fields_of(line);
    fields.resize(columns.size());  // an empty one at the end
    CsvRow row;
    for (std::size_t i = 0; i < columns.size(); ++i) row[columns[i]] = std::move(fields[i]);
    rows.push_back(std::move(row));
  }
  return rows;
}

/// What was received, by what it is: what a run left of it, and whether checksums are among that.
struct Received {
  std::map<std::string, std::string> what;
  bool has_bytes = false;
};

/// With `workload.payload` = `none` there is a dash or nothing.
bool is_checksum(const std::string& crc) { return !crc.empty() && crc != "-"; }

/// By who and which epoch: length and checksum. Records of catch-all windows count without the messages' numbers, which
/// each NIC gives for itself.
Received completions_of(const Variant& variant) {
  Received found;
  for (CsvRow& row : csv_of(variant, "completions.csv")) {
    const std::string& crc = row[row.count("data_crc32") != 0 ? "data_crc32" : "crc32"];
    found.has_bytes = found.has_bytes || is_checksum(crc);
    found.what[row["rank"] + "," + row["window"] + "," + row["epoch"] + "," + row["buffer"]] =
        row["length"] + "," + crc;
  }
  return found;
}

/// By sender, receiver, tag and number: status and checksum. The file has them as they ended; they are numbered as
/// they were asked for.
Received messages_of(const Variant& variant) {
  Received found;
  // The directory may hold the file of an earlier run.
  if (!variant.stats.at("units").as_object().contains("messages")) return found;
  // A message with a name is that of the name. Others of a channel are told apart by their issue only, and that may be
  // the same time for some of them: they are the same all together.
  std::map<std::string, std::vector<std::string>> channels;
  for (CsvRow& row : csv_of(variant, "messages.csv")) {
    if (row["kind"] != "recv") continue;
    found.has_bytes = found.has_bytes || is_checksum(row["crc32"]);
    channels[row["peer"] + "," + row["rank"] + "," + row["tag"] + "," + row["name"]].push_back(row["status"] + "," +
                                                                                               row["crc32"]);
  }
  for (auto& [channel, all] : channels) {
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size(); ++i) found.what[fmt::format("{},{}", channel, i)] = all[i];
  }
  return found;
}

/// By what a program of a rank asked for, and which of these: status. The message layer's own puts are no program's.
Received statuses_of(const Variant& variant) {
  Received found;
  std::map<std::string, std::vector<std::pair<double, std::string>>> asked;
  for (CsvRow& row : csv_of(variant, "puts.csv")) {
    if (exclusive_sender(Mailbox{std::strtoull(row["mailbox"].c_str(), nullptr, 0)})) continue;
    std::string what;
    for (const char* column : {"rank", "kind", "name", "dest", "mailbox", "size"}) what += row[column] + ",";
    asked[what].emplace_back(std::strtod(row["issue_ns"].c_str(), nullptr), row["status"]);
  }
  for (auto& [what, all] : asked) {
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size(); ++i) found.what[fmt::format("{}{}", what, i)] = all[i].second;
  }
  return found;
}

/// How many differ, of how many that either has.
struct Differing {
  std::size_t count = 0;
  std::size_t all = 0;
};
Differing differing(const Received& one, const Received& other) {
  Differing found{0, one.what.size()};
  for (const auto& [which, what] : one.what) {
    const auto there = other.what.find(which);
    if (there == other.what.end() || there->second != what) ++found.count;
  }
  for (const auto& [which, what] : other.what) {
    if (one.what.count(which) != 0) continue;
    ++found.count;
    ++found.all;
  }
  return found;
}

/// One kind of what runs leave, and how the comparison of it reads.
struct Kind {
  Received (*of)(const Variant& variant);
  const char* name;
  const char* title;
  const char* measure;  ///< what is compared beside the bytes
  const char* reason;   ///< of a difference
};
constexpr std::array<Kind, 3> kKinds{
    {{completions_of, "completions", "Completions", "length",
      "the buffers of a mailbox are filled by what comes first (of several senders; of one where messages, or in RDMA "
      "requests for addresses, overtake one another: jitter, loss, an untracked NIC), or a check fails: see --check"},
     {statuses_of, "statuses", "Puts and gets", "status",
      "windows and buffers are there, or not yet or no more, when a message comes, and that is another time in each"},
     {messages_of, "messages", "Messages", "status", "a check fails: see --check"}}};

/// Whether all runs that are whole have left the same.
struct Verdict {
  std::array<std::optional<bool>, kKinds.size()> same;  ///< none: there was nothing to compare
  std::vector<std::string> differences;
};

/// Completions need not be the same: which put fills which buffer is decided by arrival.
Verdict print_sameness(std::ostream& out, const std::vector<Variant>& variants) {
  Verdict verdict;
  std::vector<const Variant*> whole;
  for (const Variant& variant : variants) {
    if (is_partial(variant)) {
      out << variant.title << ": partial, not compared\n";
    } else {
      whole.push_back(&variant);
    }
  }
  if (whole.size() < 2) return verdict;
  std::string where = "each";
  if (whole.size() < variants.size()) where = fmt::format("{} and {}", whole.front()->title, whole.back()->title);
  const Variant& base = *whole.front();
  const bool has_messages = !messages_of(base).what.empty();
  for (std::size_t k = 0; k < kKinds.size(); ++k) {
    const Kind& kind = kKinds[k];
    const Received first = kind.of(base);
    bool is_same = true;
    bool has_bytes = first.has_bytes;
    bool is_empty = first.what.empty();
    for (std::size_t i = 1; i < whole.size(); ++i) {
      const Received other = kind.of(*whole[i]);
      is_empty = is_empty && other.what.empty();
      has_bytes = has_bytes || other.has_bytes;
      const auto [count, all] = differing(first, other);
      if (count == 0) continue;
      is_same = false;
      const std::string what = kind.of == statuses_of ? "puts and gets" : kind.name;
      out << fmt::format("{}: {} of {} {} have another {}{} than {}'s: {}\n", whole[i]->title, count, all, what,
                         kind.measure, has_bytes ? " or other bytes" : "", base.title, kind.reason);
      verdict.differences.push_back(fmt::format("{}: {} of {} {}", whole[i]->directory, count, all, what));
    }
    if (!is_empty) verdict.same[k] = is_same;
    // A trace of messages has no completions of its own, and most traces have no messages.
    const bool is_expected = kind.of == completions_of && !has_messages;
    if (!is_same || (is_empty && !is_expected)) continue;
    if (is_empty) {
      out << kind.title << ": none to compare\n";
    } else {
      const char* no_bytes =
          has_bytes || kind.of == statuses_of ? "" : " (bytes are not kept: workload.payload is none)";
      out << fmt::format("{}: {}, the same {}{} in {}{}\n", kind.title, first.what.size(), kind.measure,
                         has_bytes ? " and bytes" : "", where, no_bytes);
    }
  }
  return verdict;
}

std::optional<Error> write_json(const std::string& directory, const std::vector<Variant>& variants,
                                const Verdict& verdict) {
  AtomicFile file(directory + "/compare.json");
  if (auto error = file.open()) return error;
  std::ostream& out = file.stream();
  out << "{\"schema\":\"rvma-compare/1\"";
  for (std::size_t k = 0; k < kKinds.size(); ++k) {
    const std::optional<bool>& same = verdict.same[k];
    out << fmt::format(",\"same_{}\":{}", kKinds[k].name, !same ? "null" : *same ? "true" : "false");
  }
  json::array differences;
  for (const std::string& difference : verdict.differences) differences.emplace_back(json::string(difference));
  out << ",\"differences\":" << json::serialize(differences) << ",\n\"runs\":[";
  for (std::size_t i = 0; i < variants.size(); ++i) {
    out << (i == 0 ? "\n" : ",\n")
        << fmt::format("{{\"name\":\"{}\",\"partial\":{}", variants[i].directory, is_partial(variants[i]));
    for (const Row& row : rows()) {
      const double figure = row.figure(variants[i].stats);
      out << fmt::format(",\"{}\":{:.{}f}", row.name, std::isnan(figure) ? 0 : figure, row.decimals);
    }
    if (received_messages(variants[i].stats) > 0) {
      out << ",\"messages\":" << json::serialize(variants[i].stats.at("units").at("messages"));
    }
    out << ",\"breakdown_ns\":" << json::serialize(variants[i].stats.at("breakdown_ns")) << "}";
  }
  out << "\n]}\n";
  return file.commit();
}

// ------------------------------------------------------------------------------------------------------------ command

/// Takes `--name value` or `--name=value` out of the arguments. One without a value stays, for the runs to say so.
std::optional<std::string> take_option(std::vector<std::string>& arguments, const std::string& name) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].rfind(name + "=", 0) == 0) {
      const std::string value = arguments[i].substr(name.size() + 1);
      arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i));
      return value;
    }
    if (arguments[i] == name && i + 1 < arguments.size()) {
      const std::string value = arguments[i + 1];
      const auto from = arguments.begin() + static_cast<std::ptrdiff_t>(i);
      arguments.erase(from, from + 2);
      return value;
    }
  }
  return std::nullopt;
}

/// One of the files that a run records: its own, with the run's name before the extension.
std::string file_of(const std::string& file, const Variant& variant) {
  const std::filesystem::path path{file};
  if (!path.has_filename()) return file;
  const std::string name = path.stem().string() + "." + variant.directory + path.extension().string();
  return (path.parent_path() / name).string();
}

void print_help() {
  std::cout << "usage: rvma compare TRACE [options of run]\n\n"
               "Runs the trace on RVMA, on RDMA with a NIC that does not track packets out of order, and on RDMA with "
               "one that does,\n"
               "and prints their figures side by side. --out DIR keeps the results of each: DIR/rvma, DIR/rdma, "
               "DIR/rdma_tracked, and\n"
               "DIR/compare.json. --timeline and --pcap write a file for each, with its name before the extension: "
               "--timeline t.json makes\n"
               "t.rvma.json, t.rdma.json and t.rdma_tracked.json. --protocol and rdma.ooo_tracking are compare's own; "
               "all other "
               "options of run\n"
               "apply to each.\n";
}

/// A directory for results that nobody asked to keep.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "rvma-compare-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

bool reads_stdin(const std::vector<std::string>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const std::string& argument) {
    return argument == "-" || argument == "--trace=-" || argument == "/dev/stdin";
  });
}

/// The children's exit statuses and messages; the worst decides.
int report_children(const std::vector<Variant>& variants) {
  int worst = kFine;
  std::string last;
  for (const Variant& variant : variants) {
    worst = std::max(worst, std::min<int>(variant.status, kInternal));
    std::string text = read_file(variant.out + ".stderr");
    if (variant.status > kKilled) {
      text += fmt::format("the run was ended by signal {}\n", variant.status - kKilled);
    }
    // What all say is said once.
    if (text == last) continue;
    last = text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (variant.status == kBadInput) {
        std::cerr << line << "\n";
      } else {
        std::cerr << variant.directory << ": " << line << "\n";
      }
    }
    if (variant.status == kBadInput) break;
  }
  return worst;
}

}  // namespace

int compare_command(const std::vector<std::string>& given) {
  std::vector<std::string> arguments = given;
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      print_help();
      return kFine;
    }
    if (argument.rfind("--protocol", 0) == 0) {
      std::cerr << command_line_error("--protocol: compare runs both", "expected no --protocol").to_string() << "\n";
      return kBadInput;
    }
  }
  const bool is_quiet = std::find(arguments.begin(), arguments.end(), std::string{"--quiet"}) != arguments.end();
  const std::optional<std::string> out = take_option(arguments, "--out");
  std::map<std::string, std::string> recorded;
  for (const char* option : {"--timeline", "--pcap"}) {
    if (const auto file = take_option(arguments, option)) recorded[option] = *file;
  }
  std::optional<Scratch> scratch;
  if (!out) scratch.emplace();
  const std::string directory = out ? *out : scratch->path();
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure || directory.empty()) {
    std::cerr << command_line_error("--out: cannot create '" + directory + "': " + failure.message()).to_string()
              << "\n";
    return kBadInput;
  }

  // 1. The runs.
  std::vector<Variant> variants = {{"RVMA", "rvma", "rvma", false, {}, {}, 0, {}},
                                   {"RDMA", "rdma", "rdma", false, {}, {}, 0, {}},
                                   {"RDMA tracked", "rdma_tracked", "rdma", true, {}, {}, 0, {}}};
  static_assert(kVariants == 3, "one place for each in `running`");
  SharedInput input;
  if (reads_stdin(arguments)) {
    if (const auto error = input.fill()) {
      std::cerr << error->to_string() << "\n";
      return kBadInput;
    }
  }
  PassedOnSignals signals;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    Variant& variant = variants[i];
    variant.out = directory + "/" + variant.directory;
    // The user's come last: one that lacks its value there must not find another's.
    variant.arguments = {"--protocol", variant.protocol, "--out", variant.out};
    if (!is_quiet) variant.arguments.emplace_back("--quiet");
    for (const auto& [option, file] : recorded) {
      variant.arguments.insert(variant.arguments.end(), {option, file_of(file, variant)});
    }
    variant.arguments.insert(variant.arguments.end(), arguments.begin(), arguments.end());
    PassedOnSignals::hold(true);
    running[i] = start(variant, input, signals);
    // One that came between two starts is for the later ones, too.
    if (passed_on != 0 && running[i] > 0) kill(running[i], passed_on);
    PassedOnSignals::hold(false);
  }
  for (std::size_t i = 0; i < variants.size(); ++i) variants[i].status = wait_for(i);
  signals.restore();
  const int status = report_children(variants);
  for (const Variant& variant : variants) std::filesystem::remove(variant.out + ".stderr", failure);
  // Told to stop before it had begun: that is no failure of the program, and there is nothing to compare.
  const bool is_stopped = std::any_of(variants.begin(), variants.end(), [](const Variant& variant) {
    return passed_on != 0 && variant.status == kKilled + passed_on;
  });
  if (status > kFailed) return is_stopped ? kFailed : status;

  // 2. Their results.
  for (Variant& variant : variants) variant.stats = json::parse(read_file(variant.out + "/stats.json"));
  std::ostringstream text;
  print_table(text, variants);
  print_stages(text, variants);
  print_messages(text, variants);
  const Verdict verdict = print_sameness(text, variants);
  if (!is_quiet) std::cout << text.str();
  if (out) {
    if (const auto error = write_json(directory, variants, verdict)) {
      std::cerr << error->to_string() << "\n";
      return kBadInput;
    }
  }
  return status;
}

}  // namespace rvma::cli
