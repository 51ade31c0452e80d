/// \file
/// The mailboxes that were closed last, so that late messages are told `closed` and not `no_mailbox`.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "base/random.hpp"
#include "nic/index_allocator.hpp"
#include "nic/recency_list.hpp"

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

/// The last `capacity` closures. A mailbox that is opened again gives its place back.
class ClosedMemory {
 public:
  explicit ClosedMemory(std::uint32_t capacity) : places_(capacity) {}

  void remember(const MailboxKey& key) {
    forget(key);
    if (!places_.available()) forget(keys_[by_age_.oldest([](std::uint32_t /*place*/) { return true; })]);
    const std::uint32_t place = places_.take();
    if (place >= keys_.size()) keys_.resize(place + std::size_t{1});
    keys_[place] = key;
    by_age_.add(place);
    place_of_[key] = place;
  }
  void forget(const MailboxKey& key) {
    const auto found = place_of_.find(key);
    if (found == place_of_.end()) return;
    by_age_.remove(found->second);
    places_.give_back(found->second);
    place_of_.erase(found);
  }
  bool contains(const MailboxKey& key) const { return place_of_.contains(key); }

 private:
  IndexAllocator places_;
  std::vector<MailboxKey> keys_;  ///< by place
  RecencyList by_age_;
  boost::unordered_flat_map<MailboxKey, std::uint32_t> place_of_;
};

}  // namespace rvma
