// kv: clients ask servers for the values of keys, a few keys much more often than others.
//
// A trace is fixed, so a server's program must name whom it answers next. It has a mailbox for each client that asks
// it, and answers in the order in which clients, if all were equally fast, would ask: it waits for the request, then
// puts the answer. A client keeps some requests open and takes answers as they come: it waits for any answer, not for
// that to a certain request. So no answer precedes its request, and nothing can hang: of all requests that are not yet
// answered, the first in that order has been sent, and its server answers it next.
#include <algorithm>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "base/int128.hpp"
#include "base/random.hpp"
#include "workload/generator_options.hpp"
#include "workload/trace_syntax.hpp"
#include "workload/zipf.hpp"

namespace rvma::generator {
namespace {

/// A request is remembered in 12 bytes, so that both ends write the same.
constexpr std::uint64_t kMaxRequests = 1ULL << 24U;
constexpr std::uint64_t kMaxKeys = 1ULL << 22U;

class KvWriter {
 public:
  std::uint64_t ranks = 2;
  std::uint64_t servers = 1;
  std::uint64_t count = 1;   ///< requests of a client
  std::uint64_t depth = 1;   ///< requests that a client keeps open
  std::uint64_t header = 1;  ///< bytes of a request or answer without the value
  std::uint64_t value = 1;   ///< bytes
  Time service;
  std::string how;

  std::uint64_t clients() const { return ranks - servers; }

  void plan(const Zipf& keys, std::uint64_t read_percent, std::uint64_t seed) {
    Random random(seed, "generate kv");
    const std::uint64_t salt = random.next();
    requests_.resize(count * clients());
    for (Request& request : requests_) {
      request.server = static_cast<std::uint32_t>(mix64(salt ^ keys.draw(random)) % servers);
      request.reads = random.below(100) < read_percent;
    }
    // By server: a counting sort, which leaves each server's in order of round and client.
    first_of_server_.assign(servers + 1, 0);
    for (const Request& request : requests_) ++first_of_server_[request.server + 1];
    for (std::uint64_t s = 0; s < servers; ++s) first_of_server_[s + 1] += first_of_server_[s];
    std::vector<std::uint64_t> next(first_of_server_.begin(), first_of_server_.end() - 1);
    by_server_.resize(requests_.size());
    for (std::uint64_t i = 0; i < requests_.size(); ++i)
      by_server_[next[requests_[i].server]++] = static_cast<std::uint32_t>(i);
  }

  void write(std::ostream& out) {
    out_ = &out;
    std::uint64_t server = 0;
    std::uint64_t client = 0;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      *out_ << "rank " << rank << "\n";
      if (server < servers && rank == rank_of_server(server)) {
        write_server(server++);
      } else {
        write_client(client++);
      }
    }
  }

  /// Spread evenly, so that with many ranks a node no node has only servers.
  std::uint64_t rank_of_server(std::uint64_t server) const { return server * ranks / servers; }
  /// The inverse of numbering the ranks that are no servers.
  std::uint64_t rank_of_client(std::uint64_t client) const {
    // Servers at or before a rank move it up; few steps, since servers are spread evenly.
    std::uint64_t server = client * servers / clients();
    while (server > 0 && rank_of_server(server - 1) >= client + server - 1) --server;
    while (server < servers && rank_of_server(server) <= client + server) ++server;
    return client + server;
  }

 private:
  struct Request {
    std::uint32_t server = 0;
    bool reads = true;
  };

  static constexpr std::uint64_t kAnswers = 1;  ///< mailbox of a client
  /// Mailbox of a server for one client.
  static std::uint64_t mailbox_for(std::uint64_t client) { return 2 + client; }
  std::uint64_t request_size(const Request& r) const { return header + (r.reads ? 0 : value); }
  std::uint64_t answer_size(const Request& r) const { return header + (r.reads ? value : 0); }

  void post(const std::string& window, const std::string& name) {
    *out_ << "  post_buffer " << window << " as=" << name << " size=" << size_text(header + value) << "\n";
  }

  void write_client(std::uint64_t client) {
    *out_ << "  init_window answers mailbox=" << kAnswers << " threshold=1op placement=managed\n";
    const std::uint64_t ahead = std::min(depth, count);
    for (std::uint64_t i = 0; i < ahead; ++i) post("answers", "a" + std::to_string(i));
    *out_ << "  barrier\n  mark begin\n";
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i >= depth) {
        *out_ << "  wait a" << i - depth << how << "\n";
        post("answers", "a" + std::to_string(i));
      }
      const Request& request = requests_[i * clients() + client];
      *out_ << "  put rank=" << rank_of_server(request.server) << " mailbox=" << mailbox_for(client)
            << " size=" << size_text(request_size(request)) << "\n";
    }
    for (std::uint64_t i = count - ahead; i < count; ++i) *out_ << "  wait a" << i << how << "\n";
    *out_ << "  mark end\n  wait all\n";
  }

  void write_server(std::uint64_t server) {
    const std::uint64_t begin = first_of_server_[server];
    const std::uint64_t end = first_of_server_[server + 1];
    // 1. A mailbox for each client that asks, with as many buffers as it may have requests open.
    asked_.assign(clients(), 0);
    answered_.assign(clients(), 0);
    for (std::uint64_t i = begin; i < end; ++i) ++asked_[by_server_[i] % clients()];
    for (std::uint64_t client = 0; client < clients(); ++client) {
      if (asked_[client] == 0) continue;
      *out_ << "  init_window c" << client << " mailbox=" << mailbox_for(client)
            << " threshold=1op placement=managed\n";
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(depth, asked_[client]); ++i) post_request(client, i);
    }
    *out_ << "  barrier\n  mark begin\n";
    // 2. The next buffer is posted before the answer that lets the client go on.
    for (std::uint64_t i = begin; i < end; ++i) {
      const std::uint64_t client = by_server_[i] % clients();
      const std::uint64_t number = answered_[client]++;
      *out_ << "  wait " << request_name(client, number) << how << "\n";
      if (service > Time::zero()) *out_ << "  compute " << to_string(service) << "\n";
      if (number + depth < asked_[client]) post_request(client, number + depth);
      *out_ << "  put rank=" << rank_of_client(client) << " mailbox=" << kAnswers
            << " size=" << size_text(answer_size(requests_[by_server_[i]])) << "\n";
    }
    *out_ << "  mark end\n  wait all\n";
  }

  static std::string request_name(std::uint64_t client, std::uint64_t number) {
    return "q" + std::to_string(client) + "_" + std::to_string(number);
  }
  void post_request(std::uint64_t client, std::uint64_t number) {
    post("c" + std::to_string(client), request_name(client, number));
  }

  std::ostream* out_ = nullptr;
  std::vector<Request> requests_;         ///< by round, then client
  std::vector<std::uint32_t> by_server_;  ///< indices into requests_
  std::vector<std::uint64_t> first_of_server_;
  std::vector<std::uint64_t> asked_;  ///< requests of each client to the server that is being written
  std::vector<std::uint64_t> answered_;
};

}  // namespace

GeneratorPattern kv_pattern() {
  using T = GeneratorOptionType;
  return {"kv",
          "clients read and write the values of keys at servers, some keys much more often than others",
          {{"ranks", T::integer, "16", "ranks, servers and clients together; at least 2"},
           {"servers", T::integer, "auto", "ranks that are servers, spread evenly; auto: one of 8"},
           {"count", T::integer, "100", "requests of each client"},
           {"depth", T::integer, "4", "requests that a client keeps open"},
           {"size", T::size, "1KiB", "bytes of a value"},
           {"header", T::size, "32B", "bytes of a request or an answer without the value"},
           {"keys", T::integer, "10000", "keys"},
           {"skew", T::decimal, "0.99", "of the Zipf distribution of keys: 0 is uniform; two decimal places"},
           {"reads", T::integer, "95", "percent of the requests that read; the others write"},
           {"service", T::time, "200ns", "computing time of a request at its server"},
           {"seed", T::integer, "1", "of every random choice"},
           {"how", T::word, "mwait", "how ranks wait for requests and answers: mwait, poll or interrupt"}}};
}

std::optional<Error> write_kv(Options& options, std::ostream& out) {
  constexpr std::uint64_t kMaxDepth = 64;
  constexpr std::uint64_t kMaxSkewHundredths = 1000;
  KvWriter writer;
  writer.ranks = options.integer("ranks", 2, trace_detail::kMaxRanks);
  writer.servers = options.is_automatic("servers") ? std::max<std::uint64_t>(writer.ranks / 8, 1)
                                                   : options.integer("servers", 1, trace_detail::kMaxRanks);
  if (writer.servers >= writer.ranks) {
    options.fail("servers",
                 std::to_string(writer.servers) + " of " + std::to_string(writer.ranks) + " ranks leave no client",
                 "expected at most " + std::to_string(writer.ranks - 1));
    writer.servers = 1;
  }
  writer.count = options.integer("count", 1, kMaxRequests);
  writer.depth = options.integer("depth", 1, kMaxDepth);
  writer.value = options.size("size", 0, kMaxMessageBytes);
  writer.header = options.size("header", 1, kMaxMessageBytes);
  const std::uint64_t keys = options.integer("keys", 1, kMaxKeys);
  const std::uint64_t skew = options.hundredths("skew", kMaxSkewHundredths);
  const std::uint64_t reads = options.integer("reads", 0, 100);
  writer.service = options.time("service");
  const std::uint64_t seed = options.integer("seed", 0, std::numeric_limits<std::uint64_t>::max());
  writer.how = how_text(options.wait_how("how"));
  if (writer.count > kMaxRequests / writer.clients()) {
    options.fail("count", "too many requests of " + std::to_string(writer.clients()) + " clients",
                 "expected at most " + std::to_string(kMaxRequests / writer.clients()));
  }
  if (options.error()) return options.error();

  writer.plan(Zipf(keys, skew), reads, seed);
  write_header(out, writer.ranks,
               "kv: " + std::to_string(writer.servers) + " servers, " + std::to_string(writer.clients()) +
                   " clients with " + std::to_string(writer.count) + " requests each, values of " +
                   size_text(writer.value) + ", seed " + std::to_string(seed));
  writer.write(out);
  return std::nullopt;
}

}  // namespace rvma::generator
