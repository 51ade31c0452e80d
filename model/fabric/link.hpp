/// \file
/// One direction of a link: exact bit rate, time of flight, and credits for each virtual channel of the buffer at its
/// far end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/component.hpp"
#include "base/stats.hpp"
#include "fabric/config.hpp"
#include "fabric/interfaces.hpp"

namespace rvma {

inline constexpr Widenings kWidenedByLinkRate{{{"fabric.link.rate", Effect::proportional}}};

struct LinkStats {
  Counter packets{"packets", "packets sent"};
  Counter wire_bytes{"bytes", "bytes sent: preamble, headers, payload, checks and gap"};
  Counter payload_bytes{"bytes", "payload bytes sent: goodput if nothing is sent twice"};
  Counter lost_down{"packets", "of them lost because the link was down"};
  Counter lost_full{"packets", "of them lost because the buffer at the far end was full"};
  TimeSum credit_stall_ns{"time that packets waited for buffer space at the far end while the link was free"};
  Utilisation wire{WorkKind::bits, "bits on the link against its rate", kWidenedByLinkRate};
  BOOST_DESCRIBE_CLASS(LinkStats, (), (packets, wire_bytes, payload_bytes, lost_down, lost_full, credit_stall_ns, wire),
                       (), ())
};

/// Sums over all links of a fabric.
struct FabricStats {
  Counter packet_hops{"packets", "packets sent over a link, summed over the links"};
  Counter wire_bytes{"bytes", "their bytes on the link"};
  Counter lost_down{"packets", "packets lost because a link was down"};
  Counter lost_full{"packets", "packets lost because a switch's buffer was full"};
  FabricLosses losses;  ///< of these and of the fault stages; copies, too
  TimeSum credit_stall_ns{"time that packets waited for buffer space while their link was free"};
  BOOST_DESCRIBE_CLASS(FabricStats, (), (packet_hops, wire_bytes, lost_down, lost_full, credit_stall_ns), (), ())
};

/// Plain C++ without a process, since a fabric has many thousands: every send is handed to the far end at once, with
/// the time at which its last bit will be there, and credits come back with the time at which the sender knows of them.
class Link : public LinkIf, public LinkCreditIf {
 public:
  /// The far end's buffer: `channels` parts of `each` bytes. Without credits (`is_paid` false) it is the far end that
  /// loses what does not fit.
  struct Buffer {
    Bytes each;
    std::uint32_t channels = 1;
    bool is_paid = true;
  };
  /// `far_end` receives. `totals`, where given, counts as well.
  Link(const LinkConfig& config, PacketSinkIf& far_end, const Buffer& buffer, FabricStats* totals = nullptr);

  // LinkIf, for a NIC: channel 0. A packet longer than the buffer is an assertion failure: it could never go.
  Time earliest_start(std::uint32_t wire_bytes, Time not_before) override {
    return earliest_start(0, wire_bytes, not_before);
  }
  Time send(PacketPtr packet, Time not_before) override;
  void on_credit(std::function<void()> ready) override { ready_ = std::move(ready); }
  // The same for a switch: the channel is packet->route.channel.
  Time earliest_start(std::uint32_t channel, std::uint32_t wire_bytes, Time not_before);
  Time forward(PacketPtr packet, Time not_before);

  /// When credit for `wire_bytes` on `channel` is there, as far as is known: a time that may be past, or never. Then
  /// on_credit() tells.
  Time credit_at(std::uint32_t channel, std::uint32_t wire_bytes);

  // LinkCreditIf, for a NIC: channel 0. Times need not come in order.
  void return_credit(std::uint32_t wire_bytes, Time at) override { return_credit(0, wire_bytes, at); }
  void return_credit(std::uint32_t channel, std::uint32_t wire_bytes, Time at);

  /// When the last bit of what has been sent so far leaves.
  Time free_at() const { return serializer_.free_at(); }
  /// Sent, and its space not given back yet.
  std::uint64_t outstanding_bytes() const { return outstanding_bytes_; }
  const Buffer& buffer() const { return buffer_; }

  /// The link goes down or comes back at `at`; in order of time, before the simulation starts. What is on its way or is
  /// sent while it is down is lost; its credit comes back at once.
  void change_at(Time at, bool up);
  bool is_up(Time at) const;
  /// The far end has lost a packet for want of space.
  void count_full(const Packet& packet);

  const LinkStats& stats() const { return stats_; }
  /// Registers the statistics.
  void publish(StatsRegistry& registry, const std::string& path) { registry.add(path, stats_); }

 private:
  struct Channel {
    std::uint64_t credit_bytes;  ///< balance at the end of the last packet sent
    bool starved = false;        ///< the sender was told "never" and waits for ready_
  };
  struct CreditReturn {
    Time known;  ///< to the sender
    std::uint32_t bytes;
    std::uint32_t channel;
  };
  struct Change {
    Time at;
    bool up;
  };
  /// Moves returns that every later send may use from the list to the balance.
  void settle();
  bool is_up_throughout(Time from, Time to) const;

  PacketSinkIf& far_end_;
  FabricStats* totals_;
  Time latency_;
  Time header_time_;  ///< that a packet's headers take to pass
  Buffer buffer_;
  Serializer serializer_;
  std::vector<Channel> channels_;
  std::vector<CreditReturn> returns_;  ///< from first_return_ on not in the balance yet, by time
  std::size_t first_return_ = 0;
  std::uint64_t outstanding_bytes_ = 0;
  std::vector<Change> changes_;
  std::function<void()> ready_;
  LinkStats stats_;
};

}  // namespace rvma
