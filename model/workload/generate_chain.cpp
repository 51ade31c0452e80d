// allreduce and sweep3d: ranks that pass messages on, each waiting for what comes before it sends.
//
// Whoever sends may run ahead of whoever receives, so several of its messages may be under way at a time, and arrive in
// any order. Each goes to a window of its own ("lane"): a put to a lane first waits for the one before it on the same
// lane to have ended. So the n-th buffer of a lane always holds its n-th message, and with four lanes nobody waits
// for that unless four messages are under way.
#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "workload/generator_options.hpp"
#include "workload/trace_syntax.hpp"

namespace rvma::generator {
namespace {

constexpr std::uint64_t kLanes = 4;

std::string compute_line(const std::string& indent, Time time) {
  return time > Time::zero() ? indent + "compute " + to_string(time) + "\n" : std::string{};
}

// ----------------------------------------------------------------------------------------------------------- allreduce

/// What a rank does in one step: it sends, then waits for what comes to it, then computes.
struct Step {
  bool sends = false;
  std::uint64_t to = 0;        ///< rank
  std::uint64_t lane_out = 0;  ///< window at the destination
  bool receives = false;
  std::uint64_t lane_in = 0;
  Time compute;
};

/// Steps whose buffers are all posted before a barrier; played `count` times.
struct Phase {
  std::vector<Step> steps;
  std::uint64_t count = 1;
};

/// Buffers of a rank that are posted at a time; times the ranks of a node, the NIC must hold them.
constexpr std::uint64_t kPostedAhead = 32;

enum class Algorithm : std::uint8_t { ring, recursive_doubling };

class AllreduceWriter {
 public:
  std::uint64_t ranks = 2;
  std::uint64_t iterations = 1;
  std::uint64_t message_size = 1;  ///< bytes
  Algorithm algorithm = Algorithm::ring;
  Time compute;  ///< of a message
  std::string how;

  void write(std::ostream& out) {
    out_ = &out;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) write_rank(rank);
  }

 private:
  void write_rank(std::uint64_t rank) {
    const std::vector<Step> steps = algorithm == Algorithm::ring ? ring_steps(rank) : doubling_steps(rank);
    // 1. A window for each lane.
    std::uint64_t lanes = 0;
    for (const Step& step : steps) lanes = std::max(lanes, step.receives ? step.lane_in + 1 : 0);
    *out_ << "rank " << rank << "\n";
    for (std::uint64_t lane = 0; lane < lanes; ++lane)
      *out_ << "  init_window w" << lane << " mailbox=" << 1 + lane << " threshold=1op\n";
    *out_ << "  barrier\n  mark begin\n";
    // 2. As many iterations a phase as may be posted ahead. All ranks must make the same barriers, whatever they do.
    const std::uint64_t unroll = std::min(iterations, kPostedAhead / steps_of_iteration());
    if (unroll > 0) {
      write_phase("  ", "a", {repeated(steps, unroll), iterations / unroll});
      write_phase("  ", "b", {repeated(steps, iterations % unroll), 1});
    } else {
      write_repeated(*out_, "  ", iterations, [&](const std::string& indent) { write_long_iteration(indent, steps); });
    }
    *out_ << "  mark end\n  wait all\n";
  }

  std::uint64_t steps_of_iteration() const {
    if (algorithm == Algorithm::ring) return 2 * (ranks - 1);
    std::uint64_t steps = 2;
    for (std::uint64_t reach = 1; 2 * reach <= ranks; reach *= 2) ++steps;
    return steps;
  }

  /// A ring of so many ranks that not all steps can be posted ahead: the steps of each half are alike, and repeated.
  void write_long_iteration(const std::string& indent, const std::vector<Step>& steps) {
    const auto half = static_cast<std::ptrdiff_t>(steps.size() / 2);
    if (compute == Time::zero()) return write_alike(indent, "a", steps);
    write_alike(indent, "a", {steps.begin(), steps.begin() + half});
    write_alike(indent, "c", {steps.begin() + half, steps.end()});
  }

  void write_alike(const std::string& indent, const std::string& name, const std::vector<Step>& steps) {
    constexpr std::ptrdiff_t kPhaseSteps = kPostedAhead / 2;
    const std::uint64_t whole = steps.size() / kPhaseSteps;
    const auto rest = static_cast<std::ptrdiff_t>(steps.size() % kPhaseSteps);
    write_phase(indent, name, {{steps.begin(), steps.begin() + kPhaseSteps}, whole});
    write_phase(indent, std::string(1, static_cast<char>(name[0] + 1)), {{steps.begin(), steps.begin() + rest}, 1});
  }

  static std::vector<Step> repeated(const std::vector<Step>& steps, std::uint64_t count) {
    std::vector<Step> all;
    for (std::uint64_t i = 0; i < count; ++i) all.insert(all.end(), steps.begin(), steps.end());
    return all;
  }

  /// Reduce-scatter, then allgather: a rank sends to the one behind it what it got in the step before.
  std::vector<Step> ring_steps(std::uint64_t rank) const {
    std::vector<Step> steps;
    for (std::uint64_t i = 0; i < 2 * (ranks - 1); ++i) {
      const bool reduces = i < ranks - 1;
      steps.push_back({true, (rank + 1) % ranks, i % kLanes, true, i % kLanes, reduces ? compute : Time::zero()});
    }
    return steps;
  }

  /// Step k exchanges everything with the rank whose number differs in bit k. Ranks beyond the largest power of two
  /// hand their part to another one first, and get the result from it last.
  std::vector<Step> doubling_steps(std::uint64_t rank) const {
    std::uint64_t core = 1;
    std::uint64_t bits = 0;
    for (; 2 * core <= ranks; core *= 2) ++bits;
    const std::uint64_t lane_in_last = bits + 1;
    std::vector<Step> steps;
    if (rank >= core) {
      steps.push_back({true, rank - core, 0, true, lane_in_last, Time::zero()});
      return steps;
    }
    const bool helps = rank + core < ranks;
    if (helps) steps.push_back({false, 0, 0, true, 0, compute});
    for (std::uint64_t bit = 0; bit < bits; ++bit)
      steps.push_back({true, rank ^ (1ULL << bit), 1 + bit, true, 1 + bit, compute});
    if (helps) steps.push_back({true, rank + core, lane_in_last, false, 0, Time::zero()});
    return steps;
  }

  void write_phase(const std::string& indent, const std::string& name, const Phase& phase) {
    if (phase.steps.empty()) return;
    write_repeated(*out_, indent, phase.count,
                   [&](const std::string& inner) { write_steps(inner, name, phase.steps); });
  }

  void write_steps(const std::string& indent, const std::string& name, const std::vector<Step>& steps) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!steps[i].receives) continue;
      *out_ << indent << "post_buffer w" << steps[i].lane_in << " as=" << name << i
            << " size=" << size_text(message_size) << "\n";
    }
    *out_ << indent << "barrier\n";
    // What a step waits for and what the next put waits for are one line; then comes the step's own computing.
    std::string waits;
    Time computes;
    std::vector<std::string> put_on_lane;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      if (put_on_lane.size() <= step.lane_out) put_on_lane.resize(step.lane_out + 1);
      std::string& before = put_on_lane[step.lane_out];
      if (step.sends && !before.empty()) waits += " " + before;
      flush(indent, waits, computes);
      if (step.sends) {
        const bool used_again = std::any_of(steps.begin() + static_cast<std::ptrdiff_t>(i) + 1, steps.end(),
                                            [&](const Step& s) { return s.sends && s.lane_out == step.lane_out; });
        before = used_again ? "p" + name + std::to_string(i) : "";
        *out_ << indent << "put" << (used_again ? " as=" + before : "") << " rank=" << step.to
              << " mailbox=" << 1 + step.lane_out << " size=" << size_text(message_size) << "\n";
      }
      if (step.receives) waits += " " + name + std::to_string(i);
      computes = step.compute;
    }
    flush(indent, waits, computes);
  }

  void flush(const std::string& indent, std::string& waits, Time& computes) {
    if (!waits.empty()) *out_ << indent << "wait" << waits << how << "\n";
    *out_ << compute_line(indent, computes);
    waits.clear();
    computes = Time::zero();
  }

  std::ostream* out_ = nullptr;
};

}  // namespace

GeneratorPattern allreduce_pattern() {
  using T = GeneratorOptionType;
  return {"allreduce",
          "all ranks reduce a vector and get the result",
          {{"ranks", T::integer, "16", "ranks; at least 2"},
           {"size", T::size, "64KiB", "bytes of the vector"},
           {"iterations", T::integer, "10", "reductions"},
           {"algorithm", T::word, "ring", "ring (reduce-scatter, then allgather) or recursive-doubling"},
           {"compute-per-byte", T::time, "0ps", "computing time of a byte that is reduced; at most 1ms"},
           {"how", T::word, "mwait", "how the ranks wait for buffers: mwait, poll or interrupt"}}};
}

std::optional<Error> write_allreduce(Options& options, std::ostream& out) {
  AllreduceWriter writer;
  writer.ranks = options.integer("ranks", 2, trace_detail::kMaxRanks);
  const std::uint64_t size = options.size("size", 1, kMaxMessageBytes);
  writer.iterations = options.integer("iterations", 1, kMaxCount);
  writer.algorithm = static_cast<Algorithm>(options.choice("algorithm", {"ring", "recursive-doubling"}));
  const Time per_byte = options.time("compute-per-byte");
  if (per_byte > Time::from_us(1000)) options.fail("compute-per-byte", "it is too long", "expected at most 1ms");
  writer.how = how_text(options.wait_how("how"));
  if (options.error()) return options.error();
  const bool ring = writer.algorithm == Algorithm::ring;
  writer.message_size = ring ? (size + writer.ranks - 1) / writer.ranks : size;
  writer.compute = per_byte * static_cast<std::int64_t>(writer.message_size);
  write_header(out, writer.ranks,
               std::string("allreduce: ") + (ring ? "ring" : "recursive doubling") + ", " +
                   std::to_string(writer.iterations) + " iterations, vector of " + size_text(size));
  writer.write(out);
  return std::nullopt;
}

// ------------------------------------------------------------------------------------------------------------- sweep3d

namespace {

/// Where a message comes from, seen from its receiver.
enum Side : std::size_t { kWest, kEast, kNorth, kSouth, kSides };
constexpr char kSideLetter[] = {'w', 'e', 'n', 's'};
constexpr Side kOpposite[] = {kEast, kWest, kSouth, kNorth};

/// The corners from which an iteration sweeps, by the sides from which a rank receives in x and in y; twice each, for
/// the two directions in z.
constexpr std::uint64_t kSweeps = 8;
constexpr Side kFromInX[] = {kWest, kEast, kEast, kWest};
constexpr Side kFromInY[] = {kNorth, kNorth, kSouth, kSouth};

class SweepWriter {
 public:
  std::array<std::uint64_t, 2> shape{};  ///< ranks in x and y
  std::uint64_t blocks = 1;              ///< of a sweep
  std::uint64_t iterations = 1;
  std::uint64_t unroll = 1;
  std::uint64_t size_in_x = 1;  ///< bytes of a message to a neighbour in x
  std::uint64_t size_in_y = 1;
  Time compute;  ///< of a block
  std::string how;
  bool messages = false;

  void write(std::ostream& out) {
    out_ = &out;
    for (std::uint64_t rank = 0; rank < shape[0] * shape[1]; ++rank) write_rank(rank);
  }

 private:
  void write_rank(std::uint64_t rank) {
    const std::uint64_t x = rank % shape[0];
    const std::uint64_t y = rank / shape[0];
    exists_[kWest] = x > 0;
    exists_[kEast] = x + 1 < shape[0];
    exists_[kNorth] = y > 0;
    exists_[kSouth] = y + 1 < shape[1];
    neighbour_[kWest] = rank - 1;
    neighbour_[kEast] = rank + 1;
    neighbour_[kNorth] = rank - shape[0];
    neighbour_[kSouth] = rank + shape[0];
    *out_ << "rank " << rank << "\n";
    if (messages) return write_messages();
    for (std::size_t side = 0; side < kSides; ++side) {
      for (std::uint64_t lane = 0; exists_[side] && lane < kLanes; ++lane)
        *out_ << "  init_window " << kSideLetter[side] << lane << " mailbox=" << mailbox(side, lane)
              << " threshold=1op\n";
    }
    *out_ << "  barrier\n  mark begin\n";
    write_repeated(*out_, "  ", iterations / unroll,
                   [&](const std::string& indent) { write_phase(indent, "", unroll * kSweeps); });
    const std::uint64_t rest = iterations % unroll;
    if (rest > 0) write_phase("  ", "r", rest * kSweeps);
    *out_ << "  mark end\n  wait all\n";
  }

  /// As the motif: receives from two sides, computing, sends to the other two, all blocking.
  void write_messages() {
    *out_ << "  barrier\n  mark begin\n";
    write_repeated(*out_, "  ", iterations, [&](const std::string& indent) {
      for (std::uint64_t sweep = 0; sweep < kSweeps; ++sweep) {
        const Side from[] = {kFromInX[sweep % 4], kFromInY[sweep % 4]};
        write_repeated(*out_, indent, blocks,
                       [&](const std::string& inner) { write_message_block(inner, sweep, from); });
      }
      *out_ << indent << "wait all" << how << "\n";
    });
    *out_ << "  mark end\n";
  }

  void write_message_block(const std::string& indent, std::uint64_t sweep, const Side (&from)[2]) {
    for (const Side side : from) {
      if (exists_[side]) write_message(indent, "recv", 'r', side, sweep, size_from(side));
    }
    *out_ << compute_line(indent, compute);
    for (const Side side : from) {
      const Side to = kOpposite[side];
      if (exists_[to]) write_message(indent, "send", 's', to, sweep, size_from(side));
    }
  }

  /// Waits before the next one begins: a rendezvous in y does not overlap the one in x.
  void write_message(const std::string& indent, const char* call, char prefix, Side side, std::uint64_t sweep,
                     std::uint64_t size) {
    const std::string name = std::string{prefix} + kSideLetter[side] + std::to_string(sweep);
    *out_ << indent << call << " as=" << name << " rank=" << neighbour_[side] << " size=" << size_text(size) << "\n"
          << indent << "wait " << name << how << "\n";
  }

  static std::uint64_t mailbox(std::size_t side, std::uint64_t lane) { return 1 + side * kLanes + lane; }
  std::uint64_t size_from(std::size_t side) const { return side == kWest || side == kEast ? size_in_x : size_in_y; }

  /// Sweeps between two barriers.
  void write_phase(const std::string& indent, const std::string& prefix, std::uint64_t sweeps) {
    indent_ = indent;
    prefix_ = prefix;
    std::fill(std::begin(posted_), std::end(posted_), 0);
    std::fill(std::begin(received_), std::end(received_), 0);
    std::fill(std::begin(sent_), std::end(sent_), 0);
    post_run(kFromInX, 0, sweeps);
    post_run(kFromInY, 0, sweeps);
    *out_ << indent_ << "barrier\n";
    for (std::uint64_t sweep = 0; sweep < sweeps; ++sweep) {
      const Side from[] = {kFromInX[sweep % 4], kFromInY[sweep % 4]};
      for (std::uint64_t block = 0; block < blocks; ++block) {
        // A neighbour from which messages come in the next sweep but not in this one is now sent to, and goes on to
        // the next sweep only when it has got the last block of this one: what it will send must be posted by then.
        if (block + 1 == blocks && sweep + 1 < sweeps) {
          if (kFromInX[(sweep + 1) % 4] != from[0]) post_run(kFromInX, sweep + 1, sweeps);
          if (kFromInY[(sweep + 1) % 4] != from[1]) post_run(kFromInY, sweep + 1, sweeps);
        }
        write_block(from);
      }
    }
  }

  /// Posts for all sweeps from `first` on that receive from the same side without a break.
  void post_run(const Side (&from)[4], std::uint64_t first, std::uint64_t sweeps) {
    const Side side = from[first % 4];
    if (!exists_[side]) return;
    for (std::uint64_t sweep = first; sweep < sweeps && from[sweep % 4] == side; ++sweep) {
      for (std::uint64_t block = 0; block < blocks; ++block) {
        const std::uint64_t number = posted_[side]++;
        *out_ << indent_ << "post_buffer " << kSideLetter[side] << number % kLanes << " as=" << buffer(side, number)
              << " size=" << size_text(size_from(side)) << "\n";
      }
    }
  }

  void write_block(const Side (&from)[2]) {
    // 1. What comes in, and that the lanes of what goes out are free.
    std::string waits;
    for (const Side side : from) {
      if (exists_[side]) waits += " " + buffer(side, received_[side]++);
      const Side to = kOpposite[side];
      if (exists_[to] && sent_[to] >= kLanes) waits += " " + put(to, sent_[to] - kLanes);
    }
    if (!waits.empty()) *out_ << indent_ << "wait" << waits << how << "\n";
    // 2. Compute.
    *out_ << compute_line(indent_, compute);
    // 3. What goes out arrives at the neighbour from the side that this rank receives from.
    for (const Side side : from) {
      const Side to = kOpposite[side];
      if (!exists_[to]) continue;
      const std::uint64_t number = sent_[to]++;
      *out_ << indent_ << "put as=" << put(to, number) << " rank=" << neighbour_[to]
            << " mailbox=" << mailbox(side, number % kLanes) << " size=" << size_text(size_from(side)) << "\n";
    }
  }

  std::string buffer(std::size_t side, std::uint64_t number) const {
    return prefix_ + "b" + kSideLetter[side] + std::to_string(number);
  }
  std::string put(std::size_t side, std::uint64_t number) const {
    return prefix_ + "p" + kSideLetter[side] + std::to_string(number);
  }

  std::ostream* out_ = nullptr;
  std::string indent_;
  std::string prefix_;  ///< of names in this phase
  bool exists_[kSides] = {};
  std::uint64_t neighbour_[kSides] = {};  ///< rank
  std::uint64_t posted_[kSides] = {};     ///< in this phase
  std::uint64_t received_[kSides] = {};
  std::uint64_t sent_[kSides] = {};
};

}  // namespace

GeneratorPattern sweep3d_pattern() {
  using T = GeneratorOptionType;
  return {"sweep3d",
          "wave fronts cross a plane of ranks from each corner, block by block (Sweep3D)",
          {{"shape", T::shape, "auto", "ranks in x and y, AxB; auto: --ranks, as near to a square as can be"},
           {"ranks", T::integer, "16", "ranks; at least 2"},
           {"iterations", T::integer, "1", "times that all 8 octants are swept"},
           {"nx", T::integer, "30", "cells of a rank in x"},
           {"ny", T::integer, "30", "cells of a rank in y"},
           {"nz", T::integer, "30", "cells of a rank in z"},
           {"kba", T::integer, "10", "planes of a block; divides nz"},
           {"fields-per-cell", T::integer, "8", "variables of a cell"},
           {"datatype-width", T::integer, "8", "bytes of a variable"},
           {"compute", T::time, "auto", "computing time of a block; auto: 140ns a plane and variable"},
           {"unroll", T::integer, "1",
            "iterations written out; if there are more, the trace repeats them, with a "
            "barrier in between"},
           {"messages", T::flag, "", kMessagesMeaning},
           {"how", T::word, "mwait", "how the ranks wait for buffers: mwait, poll or interrupt"}}};
}

std::optional<Error> write_sweep3d(Options& options, std::ostream& out) {
  constexpr std::uint64_t kMaxSide = 1U << 16U;
  constexpr std::uint64_t kMaxBlocks = 1024;  // about three times as many buffers are posted at a time
  constexpr std::int64_t kComputePsPerPlane = 140'000;
  SweepWriter writer;
  writer.shape = options.shape<2>(2);
  const std::uint64_t nx = options.integer("nx", 1, kMaxSide);
  const std::uint64_t ny = options.integer("ny", 1, kMaxSide);
  const std::uint64_t nz = options.integer("nz", 1, kMaxSide);
  const std::uint64_t kba = options.integer("kba", 1, kMaxSide);
  const std::uint64_t fields = options.integer("fields-per-cell", 1, 1U << 10U);
  const std::uint64_t cell_bytes = fields * options.integer("datatype-width", 1, 1U << 10U);
  writer.iterations = options.integer("iterations", 1, kMaxCount);
  writer.unroll = std::min(options.integer("unroll", 1, 1U << 20U), writer.iterations);
  writer.how = how_text(options.wait_how("how"));
  writer.compute = options.is_automatic("compute")
                       ? Time::from_ps(kComputePsPerPlane * static_cast<std::int64_t>(kba * fields))
                       : options.time("compute");
  writer.blocks = nz / kba;
  writer.messages = options.flag("messages");
  writer.size_in_x = ny * kba * cell_bytes;
  writer.size_in_y = nx * kba * cell_bytes;
  if (!options.error() && nz % kba != 0) {
    options.fail("kba", std::to_string(kba) + " does not divide --nz " + std::to_string(nz), "expected a divisor");
  }
  if (writer.blocks > kMaxBlocks)
    options.fail("kba", "too many blocks", "expected at most " + std::to_string(kMaxBlocks) + " blocks in --nz");
  if (std::max(writer.size_in_x, writer.size_in_y) > kMaxMessageBytes)
    options.fail("kba", "a block is too large", "expected messages of at most " + size_text(kMaxMessageBytes));
  if (options.error()) return options.error();

  write_header(out, writer.shape[0] * writer.shape[1],
               "sweep3d: " + shape_text({writer.shape.begin(), writer.shape.end()}) + " ranks of " +
                   shape_text({nx, ny, nz}) + " cells of " + size_text(cell_bytes) + ", blocks of " +
                   std::to_string(kba) + " planes, " + std::to_string(writer.iterations) + " iterations");
  writer.write(out);
  return std::nullopt;
}

}  // namespace rvma::generator
