// alltoall and halo3d: in each iteration a rank exchanges messages with the same partners.
//
// A window takes all that comes in one iteration, each message at a place of its own, and counts messages. Even and odd
// iterations have a window each: a partner may be one iteration ahead, never two, since it needs this rank's messages
// to go on. The buffer of iteration i+1 is posted before the puts of iteration i, so that it is there when the first
// partner that has those goes on.
#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "workload/generator_options.hpp"
#include "workload/trace_syntax.hpp"

namespace rvma::generator {
namespace {

/// About so many puts a rank are written out before the trace repeats itself.
constexpr std::uint64_t kPutsWrittenOut = 320;
constexpr std::uint64_t kMaxUnroll = 1U << 20U;
constexpr const char* kUnrollMeaning =
    "iterations written out; if there are more, the trace repeats them, with a barrier in between; auto: as many "
    "as have 320 puts a rank, at least two";

struct OutgoingMessage {
  std::uint64_t rank = 0;    ///< destination
  std::uint64_t size = 0;    ///< bytes
  std::uint64_t offset = 0;  ///< in the destination's buffer
  std::uint32_t tag = 0;     ///< of its direction, where a pair of ranks has several
};

struct Exchange {
  std::uint64_t iterations = 1;
  std::uint64_t unroll = 1;
  std::uint64_t buffer_size = 1;  ///< bytes
  Time compute;
  std::string how;
  bool messages = false;
};

/// As asked for, or by the partners of the rank that has most.
std::uint64_t choose_unroll(Options& options, std::uint64_t iterations, std::uint64_t partners) {
  const std::uint64_t unroll = options.is_automatic("unroll")
                                   ? std::max<std::uint64_t>(2, kPutsWrittenOut / std::max<std::uint64_t>(partners, 1))
                                   : options.integer("unroll", 1, kMaxUnroll);
  return std::min(unroll, iterations);
}

class ExchangeWriter {
 public:
  ExchangeWriter(const Exchange& exchange, std::ostream& out) : x_(exchange), out_(out) {}

  /// `incoming`: messages that come to `rank` in an iteration; at least one.
  /// `opposite`: tag of the message that comes back for one of a tag.
  void write_rank(std::uint64_t rank, const std::vector<OutgoingMessage>& outgoing, std::uint64_t incoming,
                  std::uint32_t opposite = 0) {
    if (x_.messages) return write_messages(rank, outgoing, opposite);
    outgoing_ = &outgoing;
    out_ << "rank " << rank << "\n";
    init_window(0, incoming);
    if (x_.unroll > 1) init_window(1, incoming);
    out_ << "  barrier\n  mark begin\n";
    write_repeated(out_, "  ", x_.iterations / x_.unroll,
                   [&](const std::string& indent) { write_phase(indent, "b", x_.unroll); });
    const std::uint64_t rest = x_.iterations % x_.unroll;
    if (rest > 0) write_phase("  ", "r", rest);
    out_ << "  mark end\n  wait all\n";
  }

 private:
  /// All receives, all sends, and a wait for all: each partner sends back as much as it is sent.
  void write_messages(std::uint64_t rank, const std::vector<OutgoingMessage>& outgoing, std::uint32_t opposite) {
    out_ << "rank " << rank << "\n  barrier\n  mark begin\n";
    const auto line = [&](const std::string& indent, const char* what, const OutgoingMessage& message,
                          std::uint32_t tag) {
      out_ << indent << what << " rank=" << message.rank << " size=" << size_text(message.size);
      if (tag > 0) out_ << " tag=" << tag;
      out_ << "\n";
    };
    write_repeated(out_, "  ", x_.iterations, [&](const std::string& indent) {
      if (x_.compute > Time::zero()) out_ << indent << "compute " << to_string(x_.compute) << "\n";
      for (const OutgoingMessage& message : outgoing) {
        line(indent, "recv", message, opposite > message.tag ? opposite - message.tag : 0);
      }
      for (const OutgoingMessage& message : outgoing) line(indent, "send", message, message.tag);
      out_ << indent << "wait all" << x_.how << "\n";
    });
    out_ << "  mark end\n";
  }

  static const char* window(std::uint64_t iteration) { return iteration % 2 == 0 ? "even" : "odd"; }
  static std::uint64_t mailbox(std::uint64_t iteration) { return 1 + iteration % 2; }

  void init_window(std::uint64_t iteration, std::uint64_t incoming) {
    out_ << "  init_window " << window(iteration) << " mailbox=" << mailbox(iteration) << " threshold=" << incoming
         << "op\n";
  }

  /// Begins and ends with nothing posted, so that a loop may repeat it: what is posted in one pass of a loop cannot be
  /// waited for in the next.
  void write_phase(const std::string& indent, const std::string& buffer, std::uint64_t iterations) {
    const auto post = [&](std::uint64_t i) {
      out_ << indent << "post_buffer " << window(i) << " as=" << buffer << i << " size=" << size_text(x_.buffer_size)
           << "\n";
    };
    post(0);
    if (iterations > 1) post(1);
    out_ << indent << "barrier\n";
    for (std::uint64_t i = 0; i < iterations; ++i) {
      if (i > 0 && i + 1 < iterations) post(i + 1);
      if (x_.compute > Time::zero()) out_ << indent << "compute " << to_string(x_.compute) << "\n";
      for (const OutgoingMessage& message : *outgoing_) {
        out_ << indent << "put rank=" << message.rank << " mailbox=" << mailbox(i)
             << " size=" << size_text(message.size);
        if (message.offset > 0) out_ << " offset=" << message.offset;
        out_ << "\n";
      }
      out_ << indent << "wait " << buffer << i << x_.how << "\n";
    }
  }

  const Exchange& x_;
  std::ostream& out_;
  const std::vector<OutgoingMessage>* outgoing_ = nullptr;
};

// -------------------------------------------------------------------------------------------------------------- halo3d

/// One of the 26 neighbours, seen from a rank, and what is sent to it.
struct Neighbour {
  int step[3];           ///< -1, 0 or 1 in x, y and z
  std::uint32_t tag;     ///< 1 to 27; that of the opposite direction is 28 less it
  std::uint64_t cells;   ///< of the face, edge or corner
  std::uint64_t offset;  ///< bytes before it in the buffer of whom the message comes to
};

struct Halo {
  std::array<std::uint64_t, 3> shape{};  ///< ranks in x, y and z
  std::array<std::uint64_t, 3> grid{};   ///< cells of a rank in x, y and z
  std::uint64_t cell_bytes = 8;
  bool periodic = false;
  std::vector<Neighbour> neighbours;  ///< faces, edges, corners

  std::uint64_t ranks() const { return shape[0] * shape[1] * shape[2]; }

  void find_neighbours() {
    for (int distance = 1; distance <= 3; ++distance) {
      for (int direction = 0; direction < 27; ++direction) {
        Neighbour neighbour{{direction % 3 - 1, direction / 3 % 3 - 1, direction / 9 - 1},
                            static_cast<std::uint32_t>(direction + 1),
                            1,
                            0};
        int moved = 0;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          if (neighbour.step[axis] == 0) {
            neighbour.cells *= grid[axis];
          } else {
            ++moved;
          }
        }
        if (moved == distance) neighbours.push_back(neighbour);
      }
    }
    std::uint64_t offset = 0;
    for (Neighbour& neighbour : neighbours) {
      neighbour.offset = offset;
      offset += neighbour.cells * cell_bytes;
    }
  }
  std::uint64_t buffer_size() const { return neighbours.back().offset + neighbours.back().cells * cell_bytes; }

  /// What `rank` sends. In a grid, as many messages come to it.
  void outgoing(std::uint64_t rank, std::vector<OutgoingMessage>& messages) const {
    const std::uint64_t place[3] = {rank % shape[0], rank / shape[0] % shape[1], rank / shape[0] / shape[1]};
    messages.clear();
    for (const Neighbour& neighbour : neighbours) {
      std::uint64_t there[3];
      bool exists = true;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const bool wraps =
            neighbour.step[axis] < 0 ? place[axis] == 0 : neighbour.step[axis] > 0 && place[axis] + 1 == shape[axis];
        exists = exists && (periodic || !wraps);
        there[axis] = (place[axis] + shape[axis] + static_cast<std::uint64_t>(neighbour.step[axis])) % shape[axis];
      }
      if (!exists) continue;
      messages.push_back(
          {there[0] + shape[0] * (there[1] + shape[1] * there[2]), neighbour.cells * cell_bytes, neighbour.offset,
           neighbour.tag});
    }
  }
};

}  // namespace

GeneratorPattern halo3d_pattern() {
  using T = GeneratorOptionType;
  return {"halo3d",
          "each rank exchanges faces, edges and corners of its grid with up to 26 neighbours (Halo3D-26)",
          {{"shape", T::shape, "auto", "ranks in x, y and z, AxBxC; auto: --ranks, as near to a cube as can be"},
           {"ranks", T::integer, "27", "ranks; at least 2"},
           {"iterations", T::integer, "10", "exchanges"},
           {"nx", T::integer, "32", "cells of a rank in x"},
           {"ny", T::integer, "32", "cells of a rank in y"},
           {"nz", T::integer, "32", "cells of a rank in z"},
           {"fields-per-cell", T::integer, "1", "variables of a cell"},
           {"datatype-width", T::integer, "8", "bytes of a variable"},
           {"compute", T::time, "0ns", "computing time of an iteration; auto: 26 operations a variable at 1 GFLOPS"},
           {"periodic", T::flag, "", "the outermost ranks are neighbours of those on the other side"},
           {"unroll", T::integer, "auto", kUnrollMeaning},
           {"messages", T::flag, "", kMessagesMeaning},
           {"how", T::word, "mwait", "how the ranks wait for buffers: mwait, poll or interrupt"}}};
}

std::optional<Error> write_halo3d(Options& options, std::ostream& out) {
  constexpr std::uint64_t kMaxSide = 1U << 16U;
  constexpr std::uint64_t kFlopsPerVariable = 26;
  constexpr std::uint32_t kTags = 28;
  Halo halo;
  halo.shape = options.shape<3>(2);
  const char* const names[] = {"nx", "ny", "nz"};
  for (std::size_t axis = 0; axis < 3; ++axis) halo.grid[axis] = options.integer(names[axis], 1, kMaxSide);
  const std::uint64_t fields = options.integer("fields-per-cell", 1, 1U << 10U);
  halo.cell_bytes = fields * options.integer("datatype-width", 1, 1U << 10U);
  halo.periodic = options.flag("periodic");
  Exchange exchange;
  exchange.iterations = options.integer("iterations", 1, kMaxCount);
  exchange.how = how_text(options.wait_how("how"));
  if (options.is_automatic("compute")) {
    const std::uint64_t flops = halo.grid[0] * halo.grid[1] * halo.grid[2] * fields * kFlopsPerVariable;
    constexpr std::uint64_t kMostFlops = 1ULL << 52U;  // at a nanosecond each, six weeks
    if (flops > kMostFlops) options.fail("compute", "'auto' is too long for so many cells", "expected a time");
    exchange.compute = Time::from_ps(static_cast<std::int64_t>(std::min(flops, kMostFlops) * 1000));
  } else {
    exchange.compute = options.time("compute");
  }
  exchange.messages = options.flag("messages");
  halo.find_neighbours();
  for (const Neighbour& neighbour : halo.neighbours) {
    if (neighbour.cells * halo.cell_bytes > kMaxMessageBytes)
      options.fail("nx", "a face is too large", "expected messages of at most " + size_text(kMaxMessageBytes));
  }
  exchange.buffer_size = halo.buffer_size();
  exchange.unroll = choose_unroll(options, exchange.iterations, halo.neighbours.size());
  if (options.error()) return options.error();

  write_header(out, halo.ranks(),
               "halo3d: " + shape_text({halo.shape.begin(), halo.shape.end()}) + " ranks of " +
                   shape_text({halo.grid.begin(), halo.grid.end()}) + " cells of " + size_text(halo.cell_bytes) + ", " +
                   std::to_string(exchange.iterations) + " iterations" + (halo.periodic ? ", periodic" : ""));
  ExchangeWriter writer(exchange, out);
  std::vector<OutgoingMessage> messages;
  for (std::uint64_t rank = 0; rank < halo.ranks(); ++rank) {
    halo.outgoing(rank, messages);
    writer.write_rank(rank, messages, messages.size(), kTags);
  }
  return std::nullopt;
}

// ------------------------------------------------------------------------------------------------------------ alltoall

GeneratorPattern alltoall_pattern() {
  using T = GeneratorOptionType;
  return {"alltoall",
          "every rank sends a message to every other one",
          {{"ranks", T::integer, "16", "ranks; at least 2"},
           {"size", T::size, "1KiB", "bytes of a message"},
           {"iterations", T::integer, "10", "exchanges"},
           {"compute", T::time, "0ns", "computing time of an iteration"},
           {"unroll", T::integer, "auto", kUnrollMeaning},
           {"messages", T::flag, "", kMessagesMeaning},
           {"how", T::word, "mwait", "how the ranks wait for buffers: mwait, poll or interrupt"}}};
}

std::optional<Error> write_alltoall(Options& options, std::ostream& out) {
  const std::uint64_t ranks = options.integer("ranks", 2, trace_detail::kMaxRanks);
  const std::uint64_t size = options.size("size", 0, kMaxMessageBytes);
  Exchange exchange;
  exchange.iterations = options.integer("iterations", 1, kMaxCount);
  exchange.compute = options.time("compute");
  exchange.messages = options.flag("messages");
  exchange.unroll = choose_unroll(options, exchange.iterations, ranks - 1);
  exchange.how = how_text(options.wait_how("how"));
  exchange.buffer_size = buffer_bytes(ranks, size);
  constexpr std::uint64_t kMaxBufferBytes = 16ULL << 30U;  // of the trace format
  if (exchange.buffer_size > kMaxBufferBytes) {
    options.fail("size", "the messages of all ranks together are too large",
                 "expected at most " + size_text(kMaxBufferBytes / ranks));
  }
  if (options.error()) return options.error();

  write_header(out, ranks,
               "alltoall: " + std::to_string(exchange.iterations) + " iterations, messages of " + size_text(size));
  ExchangeWriter writer(exchange, out);
  std::vector<OutgoingMessage> messages;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    // Shifted: at no time do all ranks send to the same one.
    messages.clear();
    for (std::uint64_t i = 1; i < ranks; ++i) messages.push_back({(rank + i) % ranks, size, rank * size, 0});
    writer.write_rank(rank, messages, ranks - 1);
  }
  return std::nullopt;
}

}  // namespace rvma::generator
