/// \file
/// What the scoreboard keeps of buffers, windows and messages. Private to its two sources.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "report/scoreboard.hpp"
#include "workload/payload_pattern.hpp"

namespace rvma {

/// Shadows of buffers are kept by pages, in bytes.
inline constexpr std::uint64_t kShadowPage = 4096;
/// Bytes of a record in a catch-all window (semantics 5).
inline constexpr std::uint64_t kShadowRecord = 32;

/// What a buffer must hold. Pages that nothing was written to are not stored.
struct Scoreboard::ShadowBuffer {
  NodeId node;
  Pid pid;
  VirtualAddress head;
  std::uint64_t size = 0;
  bool has_seed = false;
  std::uint64_t seed = 0;
  PhysicalAddress word;

  BufferId id;                           ///< on the NIC, once it has taken it
  std::weak_ptr<ShadowWindow> home;      ///< that it was posted to
  std::shared_ptr<ShadowWindow> window;  ///< null until the NIC has taken it, and once it has completed
  Epoch epoch;
  std::uint64_t reserved = 0;   ///< bytes or ops, as the window counts
  std::uint64_t tail = 0;       ///< of managed placement
  std::uint64_t delivered = 0;  ///< bytes of counted messages
  std::uint64_t unfinished = 0;
  bool retired = false;
  bool completion_claimed = false;
  bool returned = false;
  bool is_answer = false;  ///< of a get: its bytes are checked with the get
  bool broken = false;     ///< retired, and a message bound to it was cut off
  bool checked = false;
  std::uint32_t checksum = 0;  ///< of the whole buffer when it completed
  Time last_placed;

  std::vector<std::unique_ptr<std::uint8_t[]>> pages;
  std::vector<std::bitset<kShadowPage>> written;  ///< by page
  bool has_overlaps = false;                      ///< a byte was written twice

  /// Nothing can happen to it any more but its completion, which carries all that it says: its id may be another's.
  bool may_lose_id() const { return (retired || returned) && unfinished == 0; }

  /// A rewind has brought it back, as `number`.
  void live_again(std::shared_ptr<ShadowWindow> its_window, BufferId number) {
    id = number;
    window = std::move(its_window);
    reserved = tail = delivered = unfinished = 0;
    retired = completion_claimed = broken = checked = false;
  }

  void initial(std::uint8_t* to, std::uint64_t from, std::uint64_t bytes) const {
    if (has_seed) {
      fill_pattern(to, bytes, seed, from);
    } else {
      std::memset(to, 0, bytes);
    }
  }
  std::uint8_t* page(std::uint64_t index) {
    if (pages.empty()) pages.resize((size + kShadowPage - 1) / kShadowPage);
    std::unique_ptr<std::uint8_t[]>& page = pages[index];
    if (!page) {
      page = std::make_unique<std::uint8_t[]>(kShadowPage);
      initial(page.get(), index * kShadowPage, std::min(kShadowPage, size - index * kShadowPage));
    }
    return page.get();
  }
  void write_bytes(std::uint64_t offset, const std::vector<std::uint8_t>& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i, ++offset) {
      page(offset / kShadowPage)[offset % kShadowPage] = bytes[i];
    }
    has_overlaps = true;
  }
  void write_pattern(std::uint64_t offset, std::uint64_t bytes, std::uint64_t put_seed, std::uint64_t from) {
    if (written.empty()) written.resize((size + kShadowPage - 1) / kShadowPage);
    while (bytes > 0) {
      const std::uint64_t in_page = offset % kShadowPage;
      const std::uint64_t part = std::min(bytes, kShadowPage - in_page);
      const std::bitset<kShadowPage> bits = (~std::bitset<kShadowPage>{} >> (kShadowPage - part)) << in_page;
      std::bitset<kShadowPage>& page_written = written[offset / kShadowPage];
      has_overlaps = has_overlaps || (page_written & bits).any();
      page_written |= bits;
      fill_pattern(page(offset / kShadowPage) + in_page, part, put_seed, from);
      offset += part;
      from += part;
      bytes -= part;
    }
  }
};

struct Scoreboard::ShadowWindow {
  NodeId node;
  Pid pid;
  Mailbox mailbox;
  std::uint64_t threshold = 0;
  ThresholdType type = ThresholdType::bytes;
  Placement placement = Placement::steered;
  std::uint32_t key = 0;
  bool catch_all = false;
  bool readable = false;
  std::deque<ShadowBuffer*> bucket;  ///< active first
  std::deque<ShadowBuffer*> posted;  ///< in order, from epoch first_posted on; null: its memory was given back
  std::uint64_t first_posted = 0;
  std::uint64_t next_epoch = 0;  ///< of the active buffer
  std::uint64_t next_completion = 0;
  bool closing = false;
  bool rewinding = false;
  std::set<std::uint64_t> broken_epochs;  ///< lack a message: passed over once the window closes
  /// A managed misfit retired a buffer with this much room: the message that explains it must come next.
  bool misfit_open = false;
  std::uint64_t misfit_room = 0;

  void forget(const ShadowBuffer& buffer) {
    // Most often it is the first.
    const auto place = std::find(posted.begin(), posted.end(), &buffer);
    if (place != posted.end()) *place = nullptr;
    for (; !posted.empty() && posted.front() == nullptr; ++first_posted) posted.pop_front();
  }
};

struct Scoreboard::BoundMessage {
  std::shared_ptr<ShadowBuffer> buffer;
  std::shared_ptr<ShadowWindow> window;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t seed = 0;
  bool is_answer = false;  ///< to a get: its bytes follow no pattern
  bool in_bounds = true;
  std::uint64_t record_bytes = 0;  ///< that stand before it, in a catch-all window
  std::vector<std::uint8_t> record;
  bool record_placed = false;
  bool cut_off = false;  ///< packets on their way may still be placed; nothing counts
  std::uint64_t placed_packets = 0;
  std::vector<bool> placed;  ///< by packet index
  std::uint64_t packets() const { return placed.empty() ? 1 : placed.size(); }
  /// All of it is at its place, so that its sender may know; it need not be counted yet.
  bool is_whole() const { return !cut_off && placed_packets == packets() && (record_placed || record_bytes == 0); }
};

/// A get from the opening of its window until its word is recycled.
struct Scoreboard::ShadowGet {
  NodeId node;
  Pid pid;
  VirtualAddress memory;
  std::uint64_t size = 0;
  std::shared_ptr<ShadowBuffer> buffer;  ///< of its window
  // At the target, once the request is accepted.
  std::weak_ptr<ShadowBuffer> source;
  std::uint64_t offset = 0;
  Time accepted;
  /// That have left the target, each packet's in all the versions in which it was sent: one that is sent again is read
  /// again, and messages may have changed the buffer since.
  std::map<std::uint64_t, std::vector<std::vector<std::uint8_t>>> sent;  ///< by place in the answer
  bool ended_ok = false;
};

struct Scoreboard::PendingCheck {
  Time visible;
  std::uint64_t order = 0;
  std::shared_ptr<ShadowBuffer> buffer;
  std::uint64_t length = 0;
};

}  // namespace rvma
