/// \file
/// The wake-ups of one simulation by time, behind a single kernel process.
#pragma once

#include <cstdint>
#include <string>
#include <systemc>
#include <vector>

#include "base/component.hpp"

namespace rvma {

/// Runs the bodies of wake-ups in order of (time, request). The kernel is asked for one notification an instant,
/// however many wake-ups are armed for it.
class WakeupQueue {
 public:
  explicit WakeupQueue(SimContext& context);
  WakeupQueue(const WakeupQueue&) = delete;
  WakeupQueue& operator=(const WakeupQueue&) = delete;
  ~WakeupQueue() = default;

  /// `wakeup` is armed for `when`; an earlier request of it is void.
  void request(Wakeup& wakeup, Time when);
  /// The wake-up was disarmed.
  void withdraw(Wakeup& wakeup);
  /// The wake-up is about to be destroyed.
  void forget(Wakeup& wakeup);

  /// Simulated time and what is running, for messages about broken invariants.
  static std::string position();

 private:
  struct Entry {
    Time when;
    std::uint64_t request;  ///< unique, in order
    Wakeup* wakeup;
    /// A heap of the standard library has its greatest element on top.
    bool operator<(const Entry& other) const {
      return when != other.when ? other.when < when : other.request < request;
    }
  };

  bool is_void(const Entry& entry) const { return entry.request != entry.wakeup->request_; }
  Wakeup* pop();
  static void prefetch(const Wakeup& wakeup);
  void run();
  /// Asks the kernel for the earliest entry that counts, or for nothing: a void one must not keep a simulation going.
  void notify();

  /// What is running, of whichever simulation: messages have no other way to learn it.
  static const Wakeup* running_;

  SimContext& context_;
  sc_core::sc_event event_;
  Time notified_for_ = Time::max();
  bool is_running_ = false;
  std::uint64_t last_request_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace rvma
