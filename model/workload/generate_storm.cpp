// storm: a stress test. Bursts of messages of random sizes go to many mailboxes of all kinds, some of which have no
// buffer yet, some of which will not fill their last one.
//
// It goes in rounds. In a round, each rank opens windows, all meet, send, and meet again when all puts have ended.
// Only then does a rank end and close its windows: whatever is counted has been counted by then.
#include <algorithm>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "workload/generator_options.hpp"
#include "workload/trace_syntax.hpp"

namespace rvma::generator {
namespace {

/// No more messages than this in a round, so that wherever they go the smallest legal NIC holds their buffers.
constexpr std::uint64_t kRoundMessages = 2048;
constexpr std::uint64_t kRoundMessagesOfRank = 32;
/// Places in a steered buffer.
constexpr std::uint64_t kPlaces = 8;

class StormWriter {
 public:
  StormWriter(std::uint64_t seed, std::ostream& out) : random_(seed, "generate storm"), out_(out) {}

  std::uint64_t ranks = 2;
  std::uint64_t max_size = 1;  ///< bytes
  std::uint64_t windows = 1;   ///< of a rank in a round
  std::uint64_t burst = 1;     ///< messages of the longest
  std::uint64_t late_percent = 0;

  void write(std::uint64_t count) {
    numbers_.assign(ranks, {});
    const std::uint64_t round = std::clamp<std::uint64_t>(kRoundMessages / ranks, 1, kRoundMessagesOfRank);
    for (std::uint64_t done = 0; done < count; done += round) {
      plan_round(std::min(round, count - done));
      for (std::uint64_t rank = 0; rank < ranks; ++rank) write_rank(rank);
    }
  }

 private:
  /// What completes an epoch of a window.
  enum class Kind : std::uint8_t {
    operations,  ///< a number of messages
    bytes,       ///< a number of messages of one size, counted in bytes
    overshoot,   ///< bytes, of messages of any size: epochs overshoot, and how many there are is a matter of order
  };
  static constexpr std::uint64_t kKinds = 3;

  struct Message {
    std::uint64_t to = 0;    ///< rank
    std::size_t window = 0;  ///< of that rank
    std::uint64_t size = 0;  ///< bytes
    std::uint64_t offset = 0;
    bool begins_burst = false;
  };
  struct Window {
    Kind kind = Kind::operations;
    bool managed = false;
    bool late = false;  ///< its buffers are posted when messages may have come already
    std::uint64_t mailbox = 0;
    std::uint64_t key = 0;
    std::uint64_t per_epoch = 1;  ///< messages; overshoot: unused
    std::uint64_t slot = 1;       ///< bytes of the longest message; bytes: of every message
    std::uint64_t threshold = 1;  ///< bytes or operations
    std::uint64_t messages = 0;   ///< that come
    std::uint64_t bytes = 0;      ///< that come
    std::uint64_t number = 0;     ///< names it
  };
  struct Numbers {
    std::uint64_t windows = 0;
    std::uint64_t puts = 0;
  };

  void plan_round(std::uint64_t messages_of_rank) {
    windows_.assign(ranks, {});
    outgoing_.assign(ranks, {});
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      for (std::uint64_t i = 0; i < windows; ++i) windows_[rank].push_back(plan_window(rank));
    }
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      while (outgoing_[rank].size() < messages_of_rank) plan_burst(rank, messages_of_rank);
    }
  }

  Window plan_window(std::uint64_t rank) {
    Window window;
    window.kind = max_size == 0 ? Kind::operations : static_cast<Kind>(random_.below(kKinds));
    window.managed = window.kind == Kind::overshoot || random_.below(2) == 0;
    window.late = random_.below(100) < late_percent;
    window.mailbox = random_.next();
    window.key = random_.below(2) == 0 ? 0 : random_.below(1ULL << 32U);
    window.per_epoch = 1 + random_.below(4);
    window.slot = window.kind == Kind::bytes ? 1 + random_.below(max_size) : max_size;
    window.threshold = window.kind == Kind::operations ? window.per_epoch
                       : window.kind == Kind::bytes    ? window.per_epoch * window.slot
                                                       : 1 + random_.below(2 * max_size);
    window.number = numbers_[rank].windows++;
    return window;
  }

  /// Some messages, one behind the other, to one window. Half of the bursts go to an eighth of the ranks.
  void plan_burst(std::uint64_t from, std::uint64_t messages_of_rank) {
    const std::uint64_t hot = 1 + ranks / 8;
    const std::uint64_t to = random_.below(random_.below(2) == 0 ? std::min(hot, ranks) : ranks);
    const std::size_t number = random_.below(windows);
    Window& window = windows_[to][number];
    std::vector<Message>& messages = outgoing_[from];
    const std::uint64_t length = std::min(1 + random_.below(burst), messages_of_rank - messages.size());
    for (std::uint64_t i = 0; i < length; ++i) {
      Message message;
      message.to = to;
      message.window = number;
      message.size = window.kind == Kind::bytes ? window.slot : random_size();
      // Steered messages come to lie upon one another, some while they arrive.
      message.offset = window.managed ? 0 : window.messages % kPlaces * window.slot;
      message.begins_burst = i == 0;
      ++window.messages;
      window.bytes += message.size;
      messages.push_back(message);
    }
  }

  /// Short and long messages in equal parts.
  std::uint64_t random_size() {
    constexpr std::uint64_t kShort = 256;
    return random_.below((random_.below(2) == 0 ? std::min(max_size, kShort) : max_size) + 1);
  }

  /// Epochs that are met whatever the order of arrival.
  static std::uint64_t certain_epochs(const Window& window) {
    if (window.kind != Kind::overshoot) return window.messages / window.per_epoch;
    return window.bytes / (window.threshold + window.slot - 1);  // no epoch takes more
  }
  /// One more buffer than epochs that can be met: there is always one for the next message, and one left at the end.
  static std::uint64_t buffers(const Window& window) {
    if (window.kind != Kind::overshoot) return window.messages / window.per_epoch + 1;
    return window.bytes / window.threshold + 1;
  }
  static std::uint64_t buffer_size(const Window& window) {
    if (window.kind == Kind::overshoot) return window.threshold + window.slot - 1;
    return buffer_bytes(window.managed ? window.per_epoch : kPlaces, window.slot);
  }

  void write_rank(std::uint64_t rank) {
    out_ << "rank " << rank << "\n";
    // 1. Windows; all buffers but those of the late ones, which come when others are sending already.
    for (const Window& window : windows_[rank]) write_window(window);
    out_ << "  barrier\n";
    if (std::any_of(windows_[rank].begin(), windows_[rank].end(), [](const Window& w) { return w.late; })) {
      out_ << "  compute " << random_.below(kLongestLateness) << "ns\n";
      for (const Window& window : windows_[rank]) {
        if (window.late) write_buffers(window);
      }
    }
    // 2. Bursts, and what is certain to complete.
    write_puts(rank);
    for (const Window& window : windows_[rank]) {
      for (std::uint64_t i = 0; i < certain_epochs(window); ++i)
        out_ << "  wait " << buffer(window, i) << how_text(static_cast<WaitHow>(random_.below(3))) << "\n";
    }
    out_ << "  wait all\n  barrier\n";
    // 3. Everything has come. The active buffer ends with what it has; those behind it come back unused.
    for (const Window& window : windows_[rank]) {
      if (random_.below(2) == 0) out_ << "  inc_epoch " << name(window) << "\n";
      out_ << "  close_window " << name(window) << "\n";
      for (std::uint64_t i = certain_epochs(window); i < buffers(window); ++i)
        out_ << "  wait " << buffer(window, i) << "\n";
    }
  }

  static std::string name(const Window& window) { return "w" + std::to_string(window.number); }
  static std::string buffer(const Window& window, std::uint64_t i) { return name(window) + "_b" + std::to_string(i); }

  void write_window(const Window& window) {
    out_ << "  init_window " << name(window) << " mailbox=" << window.mailbox << " threshold="
         << (window.kind == Kind::operations ? std::to_string(window.threshold) + "op" : size_text(window.threshold));
    if (window.managed) out_ << " placement=managed";
    if (window.key != 0) out_ << " key=" << window.key;
    out_ << "\n";
    if (!window.late) write_buffers(window);
  }

  void write_buffers(const Window& window) {
    for (std::uint64_t i = 0; i < buffers(window); ++i) {
      out_ << "  post_buffer " << name(window) << " as=" << buffer(window, i)
           << " size=" << size_text(buffer_size(window)) << "\n";
    }
  }

  void write_puts(std::uint64_t rank) {
    std::vector<std::string> named;
    for (const Message& message : outgoing_[rank]) {
      const Window& window = windows_[message.to][message.window];
      if (message.begins_burst && random_.below(2) == 0) out_ << "  compute " << random_.below(kLongestPause) << "ns\n";
      out_ << "  put";
      if (random_.below(8) == 0) {
        named.push_back("p" + std::to_string(numbers_[rank].puts++));
        out_ << " as=" << named.back();
      }
      out_ << " rank=" << message.to << " mailbox=" << window.mailbox << " size=" << size_text(message.size);
      if (message.offset != 0) out_ << " offset=" << message.offset;
      if (window.key != 0) out_ << " key=" << window.key;
      out_ << "\n";
    }
    for (std::size_t i = named.size(); i > 0; --i) out_ << "  wait " << named[i - 1] << "\n";
  }

  /// Far less than a sender goes on trying (nic.reliability.rnr_tries times rnr_delay, 35 us by default).
  static constexpr std::uint64_t kLongestLateness = 4000;  // ns
  static constexpr std::uint64_t kLongestPause = 2000;     // ns

  Random random_;
  std::ostream& out_;
  std::vector<Numbers> numbers_;                ///< of names, by rank
  std::vector<std::vector<Window>> windows_;    ///< of this round, by rank
  std::vector<std::vector<Message>> outgoing_;  ///< of this round, by rank
};

}  // namespace

GeneratorPattern storm_pattern() {
  using T = GeneratorOptionType;
  return {
      "storm",
      "a stress test: bursts of random sizes to mailboxes of all kinds, some without a buffer yet",
      {{"ranks", T::integer, "8", "ranks"},
       {"size", T::size, "16KiB", "bytes of the longest message"},
       {"count", T::integer, "100", "messages of each rank"},
       {"mailboxes", T::integer, "4", "mailboxes of each rank at a time"},
       {"burst", T::integer, "8", "messages of the longest burst"},
       {"late", T::integer, "10", "percent of the mailboxes whose buffers are posted late, so that puts are retried"},
       {"seed", T::integer, "1", "of every random choice"}}};
}

std::optional<Error> write_storm(Options& options, std::ostream& out) {
  constexpr std::uint64_t kMaxMailboxes = 64;
  const std::uint64_t ranks = options.integer("ranks", 1, trace_detail::kMaxRanks);
  const std::uint64_t size = options.size("size", 0, kMaxMessageBytes);
  const std::uint64_t count = options.integer("count", 1, kMaxCount);
  const std::uint64_t mailboxes = options.integer("mailboxes", 1, kMaxMailboxes);
  const std::uint64_t burst = options.integer("burst", 1, 1U << 20U);
  const std::uint64_t late = options.integer("late", 0, 100);
  const std::uint64_t seed = options.integer("seed", 0, std::numeric_limits<std::uint64_t>::max());
  if (options.error()) return options.error();
  StormWriter writer(seed, out);
  writer.ranks = ranks;
  writer.max_size = size;
  writer.windows = mailboxes;
  writer.burst = burst;
  writer.late_percent = late;
  write_header(out, ranks,
               "storm: " + std::to_string(count) + " messages of each rank, up to " + size_text(size) + ", seed " +
                   std::to_string(seed));
  writer.write(count);
  return std::nullopt;
}

}  // namespace rvma::generator
