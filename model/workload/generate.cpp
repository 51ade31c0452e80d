#include "workload/generate.hpp"

#include <algorithm>
#include <limits>
#include <ostream>
#include <utility>

#include "base/random.hpp"
#include "base/units.hpp"
#include "base/value_text.hpp"
#include "host/core.hpp"
#include "workload/generator_options.hpp"
#include "workload/trace_syntax.hpp"

namespace rvma::generator {
namespace {

/// About what a posted buffer of a stream holds: small enough that history and pending buffers stay in a host's cache.
constexpr std::uint64_t kBufferBytes = 256 * 1024;
/// Messages that a rank of the random pattern sends between two barriers.
constexpr std::uint64_t kRoundMessages = 32;
/// No more than this many buffers are posted to a node at a time, so that the smallest legal NIC holds them.
constexpr std::uint64_t kPostedBuffers = 4096;

// ------------------------------------------------------------------------------------------------------------ pingpong

GeneratorPattern pingpong_pattern() {
  using T = GeneratorOptionType;
  return {"pingpong",
          "two ranks send one message to and fro",
          {{"size", T::size, "64B", "bytes of a message"},
           {"iterations", T::integer, "1000", "round trips"},
           {"messages", T::flag, "", kMessagesMeaning},
           {"reuse", T::flag, "", "each rank posts the same memory again and again"},
           {"how", T::word, "mwait", "how the ranks wait: mwait, poll or interrupt"}}};
}

/// The receive is there before the message that it is for, as MPI benchmarks have it.
void write_pingpong_messages(std::uint64_t size, std::uint64_t iterations, const std::string& how, std::ostream& out) {
  const auto operation = [&](const char* what, int peer, const char* name) {
    return std::string("    ") + what + " rank=" + std::to_string(peer) + " size=" + size_text(size) + name + "\n";
  };
  for (int rank = 0; rank < 2; ++rank) {
    const std::string receive = operation("recv", 1 - rank, " as=in");
    const std::string send = operation("send", 1 - rank, "");
    const std::string wait = "    wait in" + how + "\n";
    out << "rank " << rank << "\n  barrier\n  mark begin\n  repeat " << iterations << "\n"
        << receive << (rank == 0 ? send + wait : wait + send) << "  end\n  wait all\n  mark end\n";
  }
}

std::optional<Error> write_pingpong(Options& options, std::ostream& out) {
  const std::uint64_t size = options.size("size", 0, kMaxMessageBytes);
  const std::uint64_t iterations = options.integer("iterations", 1, kMaxCount);
  const std::string how = how_text(options.wait_how("how"));
  if (options.error()) return options.error();

  const std::string window = " mailbox=0x1 threshold=" + threshold_text(1, size) + "\n";
  const std::string buffer =
      " size=" + size_text(buffer_bytes(1, size)) + (options.flag("reuse") ? " memory=1" : "") + "\n";
  const auto put = [&](int rank) {
    return "put rank=" + std::to_string(rank) + " mailbox=0x1 size=" + size_text(size) + "\n";
  };
  write_header(out, 2, "pingpong: " + std::to_string(iterations) + " round trips of " + size_text(size));
  if (options.flag("messages")) {
    write_pingpong_messages(size, iterations, how, out);
    return std::nullopt;
  }
  // Each rank posts the buffer for what comes next before the put that brings it about, and a NIC executes commands in
  // order, so a message always finds its buffer.
  out << "rank 0\n  init_window w" << window << "  barrier\n  mark begin\n  repeat " << iterations
      << "\n    post_buffer w as=pong" << buffer << "    " << put(1) << "    wait pong" << how
      << "\n  end\n  mark end\n  wait all\n";
  out << "rank 1\n  init_window w" << window << "  post_buffer w as=first" << buffer
      << "  barrier\n  mark begin\n  wait first" << how << "\n";
  if (iterations > 1) {
    out << "  repeat " << iterations - 1 << "\n    post_buffer w as=ping" << buffer << "    " << put(0)
        << "    wait ping" << how << "\n  end\n";
  }
  out << "  " << put(0) << "  mark end\n  wait all\n";
  return std::nullopt;
}

// ---------------------------------------------------------------------------------------------------- stream and
// incast

/// Some ranks send equal messages to one, which posts buffers one batch ahead of them. Barrier i stands before the puts
/// of batch i, and behind the post of batch i + 1: no put ever finds an empty bucket, and no sender ever waits for a
/// receiver that keeps up. After every kRound posts the receiver waits for the first of them: that bounds what is in
/// flight (a real program's memory is finite), and leaves enough of it that the link never runs dry.
struct Funnel {
  std::uint64_t ranks = 2;
  std::uint64_t receiver = 0;
  std::uint64_t size = 0;        ///< bytes of a message
  std::uint64_t count = 0;       ///< messages of each sender
  std::uint64_t per_buffer = 0;  ///< messages of each sender in a buffer
  bool shared = false;           ///< one window for all senders
  std::string how;

  std::uint64_t batches() const { return count / per_buffer; }
  std::uint64_t rest() const { return count % per_buffer; }
  /// What names of windows and buffers end in; one for each window.
  std::vector<std::string> windows() const {
    if (shared || ranks == 2) return {""};
    std::vector<std::string> suffixes;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      if (rank != receiver) suffixes.push_back("_" + std::to_string(rank));
    }
    return suffixes;
  }
  std::uint64_t senders_of_window() const { return shared ? ranks - 1 : 1; }
};

class FunnelWriter {
 public:
  FunnelWriter(const Funnel& funnel, std::ostream& out) : f_(funnel), out_(out), windows_(funnel.windows()) {}

  void write() {
    write_receiver();
    std::uint64_t sender = 0;
    for (std::uint64_t rank = 0; rank < f_.ranks; ++rank) {
      if (rank != f_.receiver) write_sender(rank, f_.shared ? 0 : sender++);
    }
  }

 private:
  static constexpr std::uint64_t kRound = 8;

  /// Mailboxes of full buffers have even numbers; what is left over has a window of its own behind each.
  static std::uint64_t mailbox(std::uint64_t window) { return 2 + 2 * window; }
  static std::uint64_t rest_mailbox(std::uint64_t window) { return mailbox(window) + 1; }

  std::uint64_t messages(std::uint64_t of_each_sender) const { return of_each_sender * f_.senders_of_window(); }

  void init_window(const std::string& name, std::uint64_t mailbox, std::uint64_t of_each_sender) {
    out_ << "  init_window " << name << " mailbox=" << mailbox
         << " threshold=" << threshold_text(messages(of_each_sender), f_.size) << " placement=managed\n";
  }
  void post(const std::string& indent, const std::string& prefix, const std::string& buffer,
            std::uint64_t of_each_sender) {
    for (const std::string& window : windows_) {
      out_ << indent << "post_buffer " << prefix << window << " as=" << buffer << window
           << " size=" << size_text(buffer_bytes(messages(of_each_sender), f_.size)) << "\n";
    }
  }
  void wait(const std::string& indent, const std::string& buffer, const std::string& pass = "") {
    out_ << indent << "wait";
    for (const std::string& window : windows_) out_ << " " << buffer << window << pass;
    out_ << f_.how << "\n";
  }

  void write_receiver() {
    const std::uint64_t batches = f_.batches();
    out_ << "rank " << f_.receiver << "\n";
    // 1. Windows, and the buffers of the first two batches and of the rest.
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      init_window("w" + windows_[i], mailbox(i), f_.per_buffer);
      if (f_.rest() > 0) init_window("rest" + windows_[i], rest_mailbox(i), f_.rest());
    }
    post("  ", "w", "first", f_.per_buffer);
    if (batches > 1) post("  ", "w", "second", f_.per_buffer);
    if (f_.rest() > 0) post("  ", "rest", "last", f_.rest());
    out_ << "  barrier\n  mark begin\n";
    // 2. One batch ahead of the senders.
    const std::uint64_t rounds = batches > 2 ? (batches - 2) / kRound : 0;
    const std::uint64_t odd = batches > 2 ? (batches - 2) % kRound : 0;
    if (rounds > 0) {
      out_ << "  repeat " << rounds << "\n";
      for (std::uint64_t i = 0; i < kRound; ++i) post_ahead("    ", "next" + std::to_string(i));
      wait("    ", "next0");
      out_ << "  end\n";
    }
    for (std::uint64_t i = 0; i < odd; ++i) post_ahead("  ", "odd" + std::to_string(i));
    if (batches > 1) out_ << "  barrier\n";
    // 3. Completions of a window come in order: its last buffer is the last thing to wait for.
    if (odd > 0) {
      wait("  ", "odd" + std::to_string(odd - 1));
    } else if (rounds > 0) {
      wait("  ", "next" + std::to_string(kRound - 1), "." + std::to_string(rounds - 1));
    } else {
      wait("  ", batches == 2 ? "second" : "first");
    }
    if (f_.rest() > 0) wait("  ", "last");
    out_ << "  mark end\n";
  }

  void post_ahead(const std::string& indent, const std::string& buffer) {
    post(indent, "w", buffer, f_.per_buffer);
    out_ << indent << "barrier\n";
  }

  void puts(const std::string& indent, std::uint64_t mailbox, std::uint64_t count) {
    const std::string put = "put rank=" + std::to_string(f_.receiver) + " mailbox=" + std::to_string(mailbox) +
                            " size=" + size_text(f_.size) + "\n";
    if (count == 1) {
      out_ << indent << put;
    } else {
      out_ << indent << "repeat " << count << "\n" << indent << "  " << put << indent << "end\n";
    }
  }

  void write_sender(std::uint64_t rank, std::uint64_t window) {
    out_ << "rank " << rank << "\n  barrier\n  mark begin\n";
    puts("  ", mailbox(window), f_.per_buffer);
    if (f_.batches() > 1) {
      out_ << "  repeat " << f_.batches() - 1 << "\n    barrier\n";
      puts("    ", mailbox(window), f_.per_buffer);
      out_ << "  end\n";
    }
    if (f_.rest() > 0) puts("  ", rest_mailbox(window), f_.rest());
    out_ << "  wait all\n  mark end\n";
  }

  const Funnel& f_;
  std::ostream& out_;
  std::vector<std::string> windows_;
};

/// Messages of each sender in a buffer: as asked for, or so many that the buffer has about kBufferBytes.
std::uint64_t choose_per_buffer(Options& options, const Funnel& funnel) {
  const std::uint64_t senders = funnel.senders_of_window();
  const std::uint64_t bytes_of_one = std::max<std::uint64_t>(funnel.size * senders, 1);
  if (options.is_automatic("per-buffer"))
    return std::clamp<std::uint64_t>(kBufferBytes / bytes_of_one, 1, std::max<std::uint64_t>(funnel.count, 1));
  const std::uint64_t asked = options.integer("per-buffer", 1, kMaxCount);
  const std::uint64_t most = std::max<std::uint64_t>((1ULL << 40U) / bytes_of_one, 1);
  if (asked > most) {
    options.fail("per-buffer", "a buffer would be too large", "expected at most " + std::to_string(most));
    return 1;
  }
  return std::min(asked, std::max<std::uint64_t>(funnel.count, 1));
}

GeneratorPattern stream_pattern() {
  using T = GeneratorOptionType;
  return {"stream",
          "rank 0 sends messages to rank 1 as fast as it can",
          {{"size", T::size, "64KiB", "bytes of a message"},
           {"count", T::integer, "1000", "messages"},
           {"per-buffer", T::integer, "auto", "messages in a posted buffer; auto: as many as make about 256KiB"},
           {"how", T::word, "mwait", "how the receiver waits for buffers: mwait, poll or interrupt"}}};
}

std::optional<Error> write_stream(Options& options, std::ostream& out) {
  Funnel funnel;
  funnel.receiver = 1;
  funnel.size = options.size("size", 0, kMaxMessageBytes);
  funnel.count = options.integer("count", 1, kMaxCount);
  funnel.how = how_text(options.wait_how("how"));
  funnel.per_buffer = choose_per_buffer(options, funnel);
  if (options.error()) return options.error();
  write_header(out, 2, "stream: " + std::to_string(funnel.count) + " messages of " + size_text(funnel.size));
  FunnelWriter(funnel, out).write();
  return std::nullopt;
}

GeneratorPattern incast_pattern() {
  using T = GeneratorOptionType;
  return {
      "incast",
      "all ranks send messages to rank 0",
      {{"ranks", T::integer, "8", "ranks, the receiver included; at least 2"},
       {"size", T::size, "4KiB", "bytes of a message"},
       {"count", T::integer, "1000", "messages of each sender"},
       {"shared", T::flag, "", "one window for all senders instead of one each"},
       {"per-buffer", T::integer, "auto", "messages of each sender in a buffer; auto: as many as make about 256KiB"},
       {"how", T::word, "mwait", "how the receiver waits for buffers: mwait, poll or interrupt"}}};
}

std::optional<Error> write_incast(Options& options, std::ostream& out) {
  Funnel funnel;
  funnel.ranks = options.integer("ranks", 2, trace_detail::kMaxRanks);
  funnel.shared = options.flag("shared");
  funnel.size = options.size("size", 0, kMaxMessageBytes);
  funnel.count = options.integer("count", 1, kMaxCount / trace_detail::kMaxRanks);
  funnel.how = how_text(options.wait_how("how"));
  funnel.per_buffer = choose_per_buffer(options, funnel);
  if (options.error()) return options.error();
  write_header(out, funnel.ranks,
               "incast: " + std::to_string(funnel.ranks - 1) + " senders, " + std::to_string(funnel.count) +
                   " messages of " + size_text(funnel.size) + " each, " +
                   (funnel.shared ? "one window" : "a window each"));
  FunnelWriter(funnel, out).write();
  return std::nullopt;
}

// -------------------------------------------------------------------------------------------------------------- random

GeneratorPattern random_pattern() {
  using T = GeneratorOptionType;
  return {"random",
          "all ranks send messages of random size to random windows of each other",
          {{"ranks", T::integer, "4", "ranks"},
           {"size", T::size, "16KiB", "bytes of the longest message"},
           {"count", T::integer, "100", "messages of each rank"},
           {"seed", T::integer, "1", "of every random choice"}}};
}

/// The plan is made in rounds. In each, every rank opens windows for exactly the messages that will come to it, all
/// meet, all send, and all wait for their buffers before they close the windows: nothing can be refused.
class RandomWriter {
 public:
  RandomWriter(std::uint64_t ranks, std::uint64_t max_size, std::uint64_t seed, std::ostream& out)
      : ranks_(ranks), max_size_(max_size), random_(seed, "generate random"), out_(out), numbers_(ranks) {}

  void write(std::uint64_t count) {
    const std::uint64_t round = std::clamp<std::uint64_t>(kPostedBuffers / ranks_, 1, kRoundMessages);
    for (std::uint64_t done = 0; done < count; done += round) {
      plan_round(std::min(round, count - done));
      for (std::uint64_t rank = 0; rank < ranks_; ++rank) write_rank(rank);
    }
  }

 private:
  struct Message {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t mailbox = 0;
    std::uint64_t key = 0;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;
  };
  struct Window {
    std::string name;
    std::uint64_t mailbox = 0;
    std::uint64_t key = 0;
    std::string threshold;
    Placement placement = Placement::steered;
    std::uint64_t buffers = 0;
    std::uint64_t buffer_size = 0;
  };
  /// How many names of each kind a rank has used.
  struct Numbers {
    std::uint64_t windows = 0;
    std::uint64_t puts = 0;
  };

  void plan_round(std::uint64_t messages_of_a_rank) {
    outgoing_.assign(ranks_, {});
    windows_.assign(ranks_, {});
    std::vector<std::vector<Message>> incoming(ranks_);
    for (std::uint64_t from = 0; from < ranks_; ++from) {
      for (std::uint64_t i = 0; i < messages_of_a_rank; ++i) {
        Message message;
        message.from = from;
        message.to = random_.below(ranks_);
        incoming[message.to].push_back(message);
      }
    }
    for (std::uint64_t to = 0; to < ranks_; ++to) {
      shuffle(incoming[to]);
      std::size_t begin = 0;
      while (begin < incoming[to].size()) begin += plan_window(to, incoming[to], begin);
    }
    for (std::vector<Message>& messages : outgoing_) shuffle(messages);
  }

  /// Gives some of the messages from `begin` on a window; returns how many.
  std::size_t plan_window(std::uint64_t to, std::vector<Message>& incoming, std::size_t begin) {
    const std::uint64_t left = incoming.size() - begin;
    // 1. So many messages an epoch, so many epochs; the product is what the window receives, to the last message.
    std::uint64_t per_epoch = 1 + random_.below(4);
    std::uint64_t epochs = 1 + random_.below(4);
    if (per_epoch * epochs > left) {
      per_epoch = left;
      epochs = 1;
    }
    const std::uint64_t messages = per_epoch * epochs;
    // 2. The window. Counted in bytes, all its messages have one size: any of them may fall into any epoch.
    Window window;
    window.name = "w" + std::to_string(numbers_[to].windows++);
    window.mailbox = random_.next();
    window.key = random_.below(2) == 0 ? 0 : random_.below(1ULL << 32U);
    window.placement = random_.below(2) == 0 ? Placement::steered : Placement::managed;
    window.buffers = epochs;
    const bool count_bytes = max_size_ > 0 && random_.below(2) == 0;
    const std::uint64_t slot = count_bytes ? 1 + random_.below(max_size_) : max_size_;
    window.threshold = count_bytes ? size_text(slot * per_epoch) : std::to_string(per_epoch) + "op";
    // 3. Steered messages have places of their own, so that no byte depends on the order of arrival.
    const std::uint64_t slots = window.placement == Placement::steered ? messages : per_epoch;
    window.buffer_size = std::max<std::uint64_t>(slots * slot, 1);
    for (std::uint64_t i = 0; i < messages; ++i) {
      Message& message = incoming[begin + i];
      message.mailbox = window.mailbox;
      message.key = window.key == 0 && random_.below(4) == 0 ? random_.below(1ULL << 32U) : window.key;
      message.size = count_bytes ? slot : random_size();
      message.offset = window.placement == Placement::steered ? i * slot + random_.below(slot - message.size + 1)
                                                              : random_.below(2) * random_.next();
      outgoing_[message.from].push_back(message);
    }
    windows_[to].push_back(std::move(window));
    return messages;
  }

  /// Short and long messages in equal parts.
  std::uint64_t random_size() {
    constexpr std::uint64_t kShort = 256;
    return random_.below((random_.below(2) == 0 ? std::min(max_size_, kShort) : max_size_) + 1);
  }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random_.below(i)]);
  }

  void write_rank(std::uint64_t rank) {
    out_ << "rank " << rank << "\n";
    // 1. Windows and all their buffers.
    std::vector<std::string> to_wait_for;
    for (const Window& window : windows_[rank]) write_window(window, to_wait_for);
    out_ << "  barrier\n";
    // 2. Puts; some are waited for by name.
    for (const Message& message : outgoing_[rank]) write_put(message, rank, to_wait_for);
    // 3. Everything must have come before a window is closed.
    shuffle(to_wait_for);
    for (const std::string& name : to_wait_for) {
      out_ << "  wait " << name << how_text(static_cast<WaitHow>(random_.below(3))) << "\n";
    }
    out_ << "  wait all\n";
    for (const Window& window : windows_[rank]) out_ << "  close_window " << window.name << "\n";
  }

  void write_window(const Window& window, std::vector<std::string>& to_wait_for) {
    out_ << "  init_window " << window.name << " mailbox=" << window.mailbox << " threshold=" << window.threshold;
    if (window.placement == Placement::managed) out_ << " placement=managed";
    if (window.key != 0) out_ << " key=" << window.key;
    out_ << "\n";
    for (std::uint64_t i = 0; i < window.buffers; ++i) {
      to_wait_for.push_back(window.name + "_b" + std::to_string(i));
      out_ << "  post_buffer " << window.name << " as=" << to_wait_for.back()
           << " size=" << size_text(window.buffer_size) << "\n";
    }
  }

  void write_put(const Message& message, std::uint64_t rank, std::vector<std::string>& to_wait_for) {
    out_ << "  put";
    if (random_.below(4) == 0) {
      to_wait_for.push_back("p" + std::to_string(numbers_[rank].puts++));
      out_ << " as=" << to_wait_for.back();
    }
    out_ << " rank=" << message.to << " mailbox=" << message.mailbox << " size=" << size_text(message.size);
    if (message.offset != 0) out_ << " offset=" << message.offset;
    if (message.key != 0) out_ << " key=" << message.key;
    out_ << "\n";
  }

  std::uint64_t ranks_;
  std::uint64_t max_size_;
  Random random_;
  std::ostream& out_;
  std::vector<Numbers> numbers_;
  std::vector<std::vector<Message>> outgoing_;  ///< of this round, by sender
  std::vector<std::vector<Window>> windows_;    ///< of this round, by receiver
};

std::optional<Error> write_random(Options& options, std::ostream& out) {
  const std::uint64_t ranks = options.integer("ranks", 1, trace_detail::kMaxRanks);
  const std::uint64_t size = options.size("size", 0, kMaxMessageBytes);
  const std::uint64_t count = options.integer("count", 1, kMaxCount);
  const std::uint64_t seed = options.integer("seed", 0, std::numeric_limits<std::uint64_t>::max());
  if (options.error()) return options.error();
  write_header(out, ranks,
               "random: " + std::to_string(count) + " messages of each rank, up to " + size_text(size) + ", seed " +
                   std::to_string(seed));
  RandomWriter(ranks, size, seed, out).write(count);
  return std::nullopt;
}

struct Generator {
  GeneratorPattern (*pattern)();
  Writer write;
};
/// One line a pattern: how it is described and how it is written.
constexpr Generator kGenerators[] = {
    {pingpong_pattern, write_pingpong},   {stream_pattern, write_stream},       {incast_pattern, write_incast},
    {alltoall_pattern, write_alltoall},   {allreduce_pattern, write_allreduce}, {halo3d_pattern, write_halo3d},
    {sweep3d_pattern, write_sweep3d},     {random_pattern, write_random},       {kv_pattern, write_kv},
    {mailboxes_pattern, write_mailboxes}, {storm_pattern, write_storm},
};

}  // namespace

}  // namespace rvma::generator

namespace rvma {
using generator::Generator;
using generator::kGenerators;
using generator::Options;

const std::vector<GeneratorPattern>& generator_patterns() {
  static const std::vector<GeneratorPattern> patterns = [] {
    std::vector<GeneratorPattern> all;
    for (const Generator& entry : kGenerators) all.push_back(entry.pattern());
    return all;
  }();
  return patterns;
}

std::optional<Error> generate(std::string_view pattern, const GeneratorArguments& arguments, std::ostream& out) {
  std::vector<std::string> names;
  const std::vector<GeneratorPattern>& patterns = generator_patterns();
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    names.push_back(patterns[i].name);
    if (patterns[i].name != pattern) continue;
    Options options(patterns[i], arguments);
    if (options.error()) return options.error();
    std::optional<Error> error = kGenerators[i].write(options, out);
    if (!error && !out.flush()) return Error{Position{"rvma", 0, 0}, "the trace cannot be written", ""};
    return error;
  }
  const std::string near = nearest_name(pattern, names);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return Error{Position{"rvma", 0, 0}, "gen: unknown pattern " + quoted(pattern),
               near.empty() ? "expected one of " + list : "did you mean '" + near + "'?"};
}

}  // namespace rvma
