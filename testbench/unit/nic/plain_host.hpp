/// \file
/// Surroundings of a whole NIC, for its tests: a memory that knows nothing of this project's bus extension, a core that
/// writes descriptors, and a link without limits.
#pragma once

#include <gtest/gtest.h>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <systemc>
#include <tlm>
#include <utility>
#include <vector>

#include "base/component.hpp"
#include "fabric/interfaces.hpp"
#include "nic/descriptor.hpp"

namespace rvma::test {

enum class TargetStyle { four_phase, early_completion };

/// Host memory behind the DMA socket. four_phase: blocking transport alone, which the socket of SystemC's utilities
/// turns into all four phases of the base protocol. early_completion: one call, one answer, with a delay.
class PlainMemory : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<PlainMemory> socket{"socket"};
  PlainMemory(const sc_core::sc_module_name& name, TargetStyle style) : sc_module(name), bytes(1U << 20U) {
    if (style == TargetStyle::four_phase) {
      socket.register_b_transport(this, &PlainMemory::b_transport);
    } else {
      socket.register_nb_transport_fw(this, &PlainMemory::nb_transport_fw);
      socket.register_b_transport(this, &PlainMemory::b_transport);
    }
  }
  std::uint64_t load64(std::uint64_t address) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + address, sizeof value);
    return value;
  }
  void store64(std::uint64_t address, std::uint64_t value) {
    std::memcpy(bytes.data() + address, &value, sizeof value);
  }

  /// When the write that began at `address` was asked for; it has to be there.
  Time written_at(std::uint64_t address) const { return writes.at(address); }

  std::vector<std::uint8_t> bytes;
  std::vector<std::uint64_t> beyond;     ///< addresses beyond the memory (interrupts, and what the NIC is lent)
  std::map<std::uint64_t, Time> writes;  ///< the last one at each address

 private:
  void b_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay) {
    wait(delay + sc_core::sc_time(30, sc_core::SC_NS));
    delay = sc_core::SC_ZERO_TIME;
    access(transaction, delay);
  }
  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) {
    if (phase != tlm::BEGIN_REQ) return tlm::TLM_COMPLETED;
    access(transaction, delay);
    delay += sc_core::sc_time(30, sc_core::SC_NS);
    return tlm::TLM_COMPLETED;
  }
  void access(tlm::tlm_generic_payload& transaction, const sc_core::sc_time& delay) {
    const std::uint64_t address = transaction.get_address();
    if (address + transaction.get_data_length() > bytes.size()) {
      beyond.push_back(address);
    } else if (transaction.is_read()) {
      std::memcpy(transaction.get_data_ptr(), bytes.data() + address, transaction.get_data_length());
    } else {
      writes[address] = SimContext::now() + Time::from_ps(static_cast<std::int64_t>(delay.value()));
      std::memcpy(bytes.data() + address, transaction.get_data_ptr(), transaction.get_data_length());
    }
    transaction.set_response_status(tlm::TLM_OK_RESPONSE);
  }
};

/// 50 GB/s and 40 ns, endless credit.
class PlainLink : public sc_core::sc_object, public LinkIf, public LinkCreditIf {
 public:
  explicit PlainLink(const char* name) : sc_object(name) {}
  void connect(PacketSinkIf& sink) { sink_ = &sink; }
  Time earliest_start(std::uint32_t /*wire_bytes*/, Time not_before) override { return std::max(not_before, free_at_); }
  Time send(PacketPtr packet, Time not_before) override {
    const Time start = earliest_start(packet->wire_bytes, not_before);
    free_at_ = start + Time::from_ps(20) * packet->wire_bytes;
    ++packets;
    sink_->deliver(std::move(packet), free_at_ + Time::from_ns(40));
    return start;
  }
  void on_credit(std::function<void()> /*ready*/) override {}
  void return_credit(std::uint32_t wire_bytes, Time /*at*/) override { credit += wire_bytes; }
  std::uint64_t credit = 0;  ///< bytes given back by the receiver
  std::uint64_t packets = 0;

 protected:
  void deliver(PacketPtr packet, Time at) { sink_->deliver(std::move(packet), at); }

 private:
  PacketSinkIf* sink_ = nullptr;
  Time free_at_;
};

/// Writes descriptors to an RNIC's MMIO pages.
class Cpu : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<Cpu> socket{"socket"};
  explicit Cpu(const sc_core::sc_module_name& name) : sc_module(name) {}
  tlm::tlm_response_status access(std::uint64_t address, std::uint8_t* data, std::uint32_t length, bool blocking = true,
                                  tlm::tlm_command command = tlm::TLM_WRITE_COMMAND) {
    tlm::tlm_generic_payload transaction;
    transaction.set_command(command);
    transaction.set_address(address);
    transaction.set_data_ptr(data);
    transaction.set_data_length(length);
    transaction.set_streaming_width(length);
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    if (blocking) {
      socket->b_transport(transaction, delay);
    } else {
      tlm::tlm_phase phase = tlm::BEGIN_REQ;
      EXPECT_EQ(socket->nb_transport_fw(transaction, phase, delay), tlm::TLM_COMPLETED);
    }
    return transaction.get_response_status();
  }
  void command(const Descriptor& descriptor, bool blocking = true) {
    DescriptorBytes bytes = encode(descriptor);
    EXPECT_EQ(access(kInlineOffset, bytes.data(), kDescriptorBytes, blocking), tlm::TLM_OK_RESPONSE);
  }
};

}  // namespace rvma::test
