/// \file
/// One direction of a link: exact bit rate, time of flight, and credits for the buffer at its far end.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <systemc>

#include "base/clock.hpp"
#include "base/component.hpp"
#include "base/stats.hpp"
#include "fabric/config.hpp"
#include "fabric/interfaces.hpp"

namespace rvma {

struct LinkStats {
  Counter packets{"packets", "packets sent"};
  Counter wire_bytes{"bytes", "bytes sent: preamble, headers, payload, checks and gap"};
  Counter payload_bytes{"bytes", "payload bytes sent: goodput if nothing is sent twice"};
  TimeSum credit_stall_ns{"time that packets waited for buffer space at the far end while the link was free"};
  Utilisation wire{WorkKind::bits, "bits on the link against its rate"};
  BOOST_DESCRIBE_CLASS(LinkStats, (), (packets, wire_bytes, payload_bytes, credit_stall_ns, wire), (), ())
};

/// A module without a process: every send is handed to the far end at once, with the time at which its last bit will be
/// there, and credits come back with the time at which the sender knows of them.
class Link : public sc_core::sc_module, public LinkIf, public LinkCreditIf {
 public:
  /// `far_end` receives; `receiver_buffer` bytes of it belong to this link. `stats_path` names it in the statistics.
  Link(const sc_core::sc_module_name& name, SimContext& context, const LinkConfig& config, PacketSinkIf& far_end,
       Bytes receiver_buffer, const std::string& stats_path);

  // LinkIf, for the sender. A packet longer than the receiver's buffer is an assertion failure: it could never go.
  Time earliest_start(std::uint32_t wire_bytes, Time not_before) override;
  Time send(PacketPtr packet, Time not_before) override;
  void on_credit(std::function<void()> ready) override { ready_ = std::move(ready); }

  // LinkCreditIf, for the receiver. Times need not come in order.
  void return_credit(std::uint32_t wire_bytes, Time at) override;

  const LinkStats& stats() const { return stats_; }

 private:
  struct CreditReturn {
    Time known;  ///< to the sender
    std::uint64_t bytes;
  };
  /// Earliest time >= `from` at which `bytes` of credit are known to be there.
  Time credit_time(std::uint64_t bytes, Time from) const;
  /// Moves returns that every later send may use from the list to the balance.
  void settle();

  Time latency_;
  PacketSinkIf& far_end_;
  std::uint64_t receiver_buffer_bytes_;
  Serializer serializer_;
  std::uint64_t credit_bytes_;        ///< balance at the end of the last packet sent
  std::deque<CreditReturn> returns_;  ///< not in the balance yet, by time
  std::function<void()> ready_;
  bool starved_ = false;  ///< the sender was told "never" and waits for ready_
  LinkStats stats_;
};

}  // namespace rvma
