/// \file
/// Page translation of placed packets: from a place in a region of host memory to physical segments, through the page
/// cache and, where that misses, through the region's page list in host memory. A part of the unit that decides about
/// packets (address conversion; the RDMA NIC's receive unit).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/component.hpp"
#include "base/slot_table.hpp"
#include "base/stats.hpp"
#include "base/widening.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/interfaces.hpp"
#include "nic/page_cache.hpp"

namespace rvma {

/// Virtual memory whose pages a list in host memory names, or the one page that it lies in.
struct TranslatedRegion {
  VirtualAddress head;
  std::uint64_t size = 0;     ///< bytes
  PhysicalAddress page_list;  ///< single_page: the page itself
  bool single_page = false;
  std::uint64_t posting = 0;  ///< never used twice: names the region in the cache
};

/// How many lines may be on their way.
inline constexpr Widenings kWidenedByPageMisses{{{"nic.receive.page_misses", Effect::proportional}}};

/// A packet that misses waits for its line, and later ones overtake it; a line is fetched once however many packets
/// need it. Once a packet finds no fetch free, blocked() holds until it has one.
class PageTranslator : public DmaClient {
 public:
  /// Where the owner counts.
  struct Counts {
    Counter& hits;
    Counter& misses;
    Counter& line_fetches;
    Counter& line_bytes;
    TimeSum& wait_ns;
    Peak& waiting;
    Utilisation& fetch;
  };
  /// Takes a packet whose segments are complete, found in cycle `cycle`.
  using Translated = std::function<void(PlacedPacket, const SegmentList&, Cycles cycle)>;

  /// `page_bytes`: a power of two; `fetches`: outstanding at most. `owner` gives the clock. `unblocked` runs at the end
  /// of each fetch, after the packets that it sets free.
  PageTranslator(Component& owner, std::uint64_t page_bytes, std::uint32_t fetches, PageCache cache, Counts counts,
                 Translated translated, std::function<void()> unblocked);

  /// Before the simulation starts.
  void use(DmaIf& dma) { dma_ = &dma; }
  /// Translates bytes [buffer_offset, + payload_length) of the region; they lie in it.
  void translate(PlacedPacket placed, const TranslatedRegion& region, Cycles cycle);
  bool blocked() const { return !blocked_.empty(); }

  void dma_written(std::uint64_t tag, Time entered, Time visible) override;
  /// A line of a page list has arrived.
  void dma_read_done(std::uint64_t tag) override;

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = ~Index{0};

  struct Translation {
    PlacedPacket placed;
    SegmentList to;               ///< translated so far
    std::uint64_t posting = 0;    ///< of the region
    PhysicalAddress page_list;    ///< of the region
    std::uint64_t pages = 0;      ///< that the region touches
    std::uint64_t position = 0;   ///< of the next byte to translate, from the start of the region's first page
    std::uint32_t remaining = 0;  ///< bytes to translate
    bool missed = false;          ///< the next translation has been counted as a miss
    Time waits_since;
    Index next = kNone;  ///< waits for the same line
  };
  /// A line on its way.
  struct Fetch {
    bool busy = false;
    PageCache::Key key;
    Time since;
    PayloadRef bytes;
    Index first_waiting = kNone;
    Index last_waiting = kNone;
  };

  /// Goes on as far as the page cache allows; true: all of the packet is translated, else `missing` is what it lacks.
  bool go_on(Translation& translation, PageCache::Key& missing);
  /// Lets a waiting packet wait for `missing`: with others, with a fetch of its own, or for a free fetch.
  void wait_for(Index waiting, const PageCache::Key& missing);
  void fetch(Index waiting, const PageCache::Key& missing);
  void resume(Index waiting, Cycles cycle);
  Index find_fetch(const PageCache::Key& key) const;

  Component& owner_;
  unsigned page_shift_;
  DmaIf* dma_ = nullptr;
  PageCache cache_;
  Counts counts_;
  Translated translated_;
  std::function<void()> unblocked_;
  PayloadPool line_buffers_;
  std::vector<Fetch> fetches_;
  std::vector<Index> free_fetches_;
  SlotTable<Translation> waiting_;
  FifoRing<Index> blocked_;  ///< waiting packets for which no fetch was free
};

}  // namespace rvma
