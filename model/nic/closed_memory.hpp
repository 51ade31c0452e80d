/// \file
/// The mailboxes that were closed last, so that late messages are told `closed` and not `no_mailbox`.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "base/random.hpp"

namespace rvma {

/// (pid, mailbox): the key of the translation table and of everything beside it.
struct MailboxKey {
  Pid pid;
  Mailbox mailbox;
  friend bool operator==(const MailboxKey& a, const MailboxKey& b) { return a.mailbox == b.mailbox && a.pid == b.pid; }
  friend std::size_t hash_value(const MailboxKey& key) {
    return static_cast<std::size_t>(mix64(key.mailbox.value() ^ mix64(key.pid.value())));
  }
};

/// Ring of the last `capacity` closures. A mailbox that is opened again leaves; its place in the ring stays taken until
/// it is the oldest.
class ClosedMemory {
 public:
  explicit ClosedMemory(std::uint32_t capacity) : capacity_(capacity) {}

  void remember(const MailboxKey& key) {
    if (ring_.size() < capacity_) {
      ring_.push_back({key, serial_});
    } else {
      Closure& oldest = ring_[next_];
      const auto found = serial_of_.find(oldest.key);
      if (found != serial_of_.end() && found->second == oldest.serial) serial_of_.erase(found);
      oldest = {key, serial_};
      next_ = (next_ + 1) % capacity_;
    }
    serial_of_[key] = serial_++;
  }
  void forget(const MailboxKey& key) { serial_of_.erase(key); }
  bool contains(const MailboxKey& key) const { return serial_of_.contains(key); }

 private:
  struct Closure {
    MailboxKey key;
    std::uint64_t serial;  ///< a later closure of the same mailbox supersedes this one
  };
  std::uint32_t capacity_;
  std::vector<Closure> ring_;
  std::size_t next_ = 0;  ///< oldest entry, once the ring is full
  std::uint64_t serial_ = 0;
  boost::unordered_flat_map<MailboxKey, std::uint64_t> serial_of_;
};

}  // namespace rvma
