// The mailboxes pattern: more mailboxes on one node than a NIC has room for.
#include <algorithm>
#include <ostream>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "workload/generator_options.hpp"
#include "workload/trace_syntax.hpp"
#include "workload/zipf.hpp"

namespace rvma::generator {
namespace {

struct Message {
  std::uint64_t mailbox;
  std::uint64_t place;  ///< among those to its mailbox
};

}  // namespace

GeneratorPattern mailboxes_pattern() {
  using T = GeneratorOptionType;
  return {"mailboxes",
          "ranks send to the many mailboxes of rank 0, all alike or a few of them mostly",
          {{"ranks", T::integer, "2", "ranks: rank 0 receives, the others send"},
           {"mailboxes", T::integer, "10000", "mailboxes of rank 0"},
           {"count", T::integer, "10000", "messages of each sender"},
           {"size", T::size, "64B", "bytes of a message"},
           {"depth", T::integer, "64", "messages that a sender has open at most"},
           {"skew", T::decimal, "0.00", "of the Zipf distribution of mailboxes: 0 is uniform; two decimal places"},
           {"seed", T::integer, "1", "of every random choice"},
           {"how", T::word, "mwait", "how rank 0 waits for its buffers: mwait, poll or interrupt"}}};
}

std::optional<Error> write_mailboxes(Options& options, std::ostream& out) {
  constexpr std::uint64_t kMostMailboxes = 1ULL << 24U;
  constexpr std::uint64_t kMostMessages = 1ULL << 28U;
  constexpr std::uint64_t kMaxSkewHundredths = 1000;
  const std::uint64_t ranks = options.integer("ranks", 2, trace_detail::kMaxRanks);
  const std::uint64_t mailboxes = options.integer("mailboxes", 1, kMostMailboxes);
  const std::uint64_t count = options.integer("count", 1, kMostMessages / ranks);
  const std::uint64_t size = options.size("size", 1, kMaxMessageBytes);
  const std::uint64_t depth = options.integer("depth", 1, count);
  const std::uint64_t skew = options.hundredths("skew", kMaxSkewHundredths);
  const std::uint64_t seed = options.integer("seed", 0, ~std::uint64_t{0});
  const WaitHow how = options.wait_how("how");
  if (options.error()) return options.error();

  // 1. Who sends where: frequent mailboxes are scattered over all of them.
  const Zipf popularity(mailboxes, skew);
  Random random(seed, "generate mailboxes");
  std::vector<std::uint64_t> place(mailboxes);
  for (std::uint64_t i = 0; i < mailboxes; ++i) place[i] = i;
  for (std::uint64_t i = mailboxes; i > 1; --i) std::swap(place[i - 1], place[random.below(i)]);
  std::vector<std::uint64_t> messages(mailboxes);
  std::vector<Message> sent;
  sent.reserve(count * (ranks - 1));
  for (std::uint64_t i = 0; i < count * (ranks - 1); ++i) {
    const std::uint64_t mailbox = place[popularity.draw(random)];
    sent.push_back({mailbox, messages[mailbox]++});
  }

  // 2. The receiver has a window for each mailbox, and a buffer where something comes.
  write_header(out, ranks, "mailboxes: " + std::to_string(mailboxes) + " mailboxes of rank 0");
  out << "rank 0\n";
  for (std::uint64_t i = 0; i < mailboxes; ++i) {
    out << "  init_window w" << i << " mailbox=" << i << " threshold=" << std::max<std::uint64_t>(messages[i], 1)
        << "op\n";
    if (messages[i] > 0) out << "  post_buffer w" << i << " as=b" << i << " size=" << messages[i] * size << "\n";
  }
  out << "  barrier\n";
  for (std::uint64_t i = 0; i < mailboxes; ++i) {
    if (messages[i] > 0) out << "  wait b" << i << how_text(how) << "\n";
  }
  // 3. The senders.
  for (std::uint64_t rank = 1; rank < ranks; ++rank) {
    out << "rank " << rank << "\n  barrier\n  mark begin\n";
    for (std::uint64_t i = 0; i < count; ++i) {
      const Message& message = sent[(rank - 1) * count + i];
      out << "  put rank=0 mailbox=" << message.mailbox << " size=" << size << " offset=" << message.place * size
          << "\n";
      if ((i + 1) % depth == 0) out << "  wait all\n";
    }
    out << "  mark end\n  wait all\n";
  }
  return std::nullopt;
}

}  // namespace rvma::generator
