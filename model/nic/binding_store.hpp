/// \file
/// Binding store: one entry for each bound message of more than one packet, from its first packet to its last count.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "fabric/packet.hpp"

namespace rvma {

/// Which packets of a message have been placed. Packets below the first missing one need no bits, so the storage
/// follows how far packets overtake one another (the delivery window), not the message's length.
class PacketBitmap {
 public:
  /// Marks packet `index`; false if it was marked already.
  bool mark(std::uint32_t index);
  void clear();

 private:
  friend struct StateReader;  // of the model check
  void grow(std::uint32_t words_needed);

  std::vector<std::uint64_t> words_;  ///< a ring, its size a power of two; word w of the message at w % size
  std::uint32_t first_word_ = 0;      ///< all packets of earlier words are marked
};

/// What the first packet of a message fixed; the later ones must agree with it.
struct Binding {
  bool in_use = false;
  NodeId source;
  Pid source_pid;
  Pid destination_pid;
  Mailbox mailbox;
  std::uint32_t key = 0;
  MessageId message;
  std::uint64_t offset = 0;          ///< of the put, as its sender gave it
  std::uint64_t message_length = 0;  ///< bytes
  BufferId buffer;
  std::uint64_t message_offset = 0;  ///< of the message's first byte within the buffer
  std::uint64_t counted = 0;         ///< bytes
  std::uint32_t record_bytes = 0;    ///< of a record that is placed and counted with it
  std::uint32_t on_the_way = 0;      ///< packets (and record) placed and not counted yet
  bool cut_off = false;              ///< nothing of it counts any more; freed when nothing is on the way
  PacketBitmap placed;

  /// Bytes that it counts until it ends.
  std::uint64_t total_length() const { return message_length + record_bytes; }
  /// A record of so many bytes (0: none) is on its way, too.
  void add_record(std::uint32_t bytes) {
    record_bytes = bytes;
    if (bytes > 0) ++on_the_way;
  }
  bool agrees_with(NodeId from, const DataHeader& header) const;
};

class BindingStore {
 public:
  explicit BindingStore(std::uint32_t capacity);

  bool available() const { return in_use() < capacity_; }
  std::uint32_t in_use() const { return static_cast<std::uint32_t>(entries_.size() - free_.size()); }
  /// Entries that were ever in use are below this.
  std::uint32_t made() const { return static_cast<std::uint32_t>(entries_.size()); }
  bool contains(std::uint32_t entry) const { return entry < entries_.size() && entries_[entry].in_use; }

  /// Takes an entry (legal while available()) and marks the first packet as placed.
  std::uint32_t bind(NodeId source, const DataHeader& header, BufferId buffer, std::uint64_t message_offset);
  void release(std::uint32_t entry);

  Binding& operator[](std::uint32_t entry) { return entries_[entry]; }
  const Binding& operator[](std::uint32_t entry) const { return entries_[entry]; }

 private:
  friend struct StateReader;  // of the model check
  std::uint32_t capacity_;
  std::vector<Binding> entries_;
  std::vector<std::uint32_t> free_;  ///< last freed first: warm memory
};

}  // namespace rvma
