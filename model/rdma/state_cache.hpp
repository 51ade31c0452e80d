/// \file
/// State of the RDMA NIC that may lie on the chip or in host memory: which of the numbered entries are here, and what
/// bringing one in costs. The contents themselves stay where their unit keeps them.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/component.hpp"
#include "base/stats.hpp"
#include "nic/cache_places.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/interfaces.hpp"
#include "rdma/config.hpp"

namespace rvma {

/// Bytes of a queue pair context and of a region's entry in host memory (JingZhao: 52 B a queue pair).
inline constexpr std::uint32_t kRdmaEntryBytes = 64;

struct StateCacheStats {
  Counter hits{"uses", "uses of entries that were on the NIC"};
  Counter misses{"uses", "uses that waited for their entry"};
  Counter fetches{"reads", "entries fetched from host memory"};
  Counter evictions{"entries", "entries sent away to make room"};
  Counter write_backs{"writes", "of these, entries that had changed and were written back"};
  TimeSum fetch_ns{"time of the fetches, each on its own"};
  Peak entries{"entries", "most entries that exist at a time"};
  Peak resident{"entries", "most entries on the NIC at a time"};
  BOOST_DESCRIBE_CLASS(StateCacheStats, (),
                       (hits, misses, fetches, evictions, write_backs, fetch_ns, entries, resident), (), ())
};

class StateCache : public DmaClient {
 public:
  struct Parameters {
    const RdmaStateConfig& config;
    std::uint64_t area;  ///< where entries lie in host memory: area + number x kRdmaEntryBytes
    const char* name;    ///< of the statistics, below the owner's
    bool changes;        ///< a use changes an entry: it is written back when it goes
  };
  StateCache(Component& owner, const Parameters& parameters);

  /// Before the simulation starts.
  void use(DmaIf& dma) { dma_ = &dma; }
  /// A new entry comes into being, on the NIC.
  void create(std::uint32_t number);
  void erase(std::uint32_t number);
  /// True: the entry is on the NIC, and is used. False: see fetch().
  bool find(std::uint32_t number);
  /// Brings an entry that find() missed; `done` runs when it is here. Waits where rdma.*.misses are under way.
  void fetch(std::uint32_t number, std::function<void()> done);

  void dma_written(std::uint64_t /*tag*/, Time /*entered*/, Time /*visible*/) override {}
  void dma_read_done(std::uint64_t tag) override;

  const StateCacheStats& stats() const { return stats_; }

 private:
  struct Fetch {
    Time since;
    bool is_wanted = true;  ///< false: the entry has been erased meanwhile
    std::vector<std::function<void()>> waiting;
  };
  void start(std::uint32_t number);
  void bring_in(std::uint32_t number);

  Component& owner_;
  DmaIf* dma_ = nullptr;
  std::uint64_t area_;
  bool changes_;
  std::uint32_t most_fetches_;
  CachePlaces places_;
  std::vector<std::uint32_t> held_;                                   ///< numbers, by place
  boost::unordered_flat_map<std::uint32_t, std::uint32_t> resident_;  ///< place by number
  boost::unordered_flat_map<std::uint32_t, Fetch> fetches_;
  FifoRing<std::uint32_t> queue_;  ///< numbers whose fetch has not started
  std::uint32_t under_way_ = 0;
  std::uint64_t entries_ = 0;
  StateCacheStats stats_;
};

}  // namespace rvma
