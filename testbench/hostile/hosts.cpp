#include "hosts.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/random.hpp"
#include "host/interfaces.hpp"

namespace rvma::hostile {

namespace {
constexpr std::uint64_t kPages = kMemoryBytes / kPage;
/// Coprime to the number of pages.
constexpr std::uint64_t kPageStride = 37;
constexpr std::uint64_t kWordBytes = 16;

sc_core::sc_time memory_delay() { return sc_core::sc_time(30, sc_core::SC_NS); }
}  // namespace

// -------------------------------------------------------------------------------------------------------------- memory

PlainMemory::PlainMemory(const sc_core::sc_module_name& name, std::uint64_t base)
    : sc_module(name), base_(base), bytes_(kMemoryBytes), allowed_(kMemoryBytes, false) {
  for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::uint8_t>(mix64(i));
  expected_ = bytes_;
  socket.register_nb_transport_fw(this, &PlainMemory::nb_transport_fw);
  socket.register_b_transport(this, &PlainMemory::b_transport);
}

std::vector<std::uint64_t> PlainMemory::take_pages(std::uint64_t count) {
  std::vector<std::uint64_t> pages;
  for (std::uint64_t i = 0; i < count; ++i) {
    RVMA_ASSERT(next_page_ < kPages, "the bench has more regions than memory");
    pages.push_back(base_ + (next_page_++ * kPageStride % kPages) * kPage);
  }
  return pages;
}

void PlainMemory::host_write(std::uint64_t address, const std::uint8_t* bytes, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    bytes_[address + i - base_] = bytes[i];
    expected_[address + i - base_] = bytes[i];
  }
}

void PlainMemory::host_store64(std::uint64_t address, std::uint64_t value) {
  std::uint8_t bytes[8];
  std::memcpy(bytes, &value, sizeof bytes);
  host_write(address, bytes, sizeof bytes);
}

std::uint64_t PlainMemory::load64(std::uint64_t address) const {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes_.data() + (address - base_), sizeof value);
  return value;
}

void PlainMemory::allow(std::uint64_t address, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) allowed_[address + i - base_] = true;
}

void PlainMemory::expect64(std::uint64_t address, std::uint64_t value) {
  for (std::uint64_t i = 0; i < 8; ++i) expect_byte(address + i, static_cast<std::uint8_t>(value >> (8 * i)));
}

std::uint64_t PlainMemory::wrong(std::uint64_t& first) const {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    if (allowed_[i] || bytes_[i] == expected_[i]) continue;
    if (count++ == 0) first = base_ + i;
  }
  return count;
}

tlm::tlm_sync_enum PlainMemory::nb_transport_fw(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                                sc_core::sc_time& delay) {
  if (phase != tlm::BEGIN_REQ) return tlm::TLM_COMPLETED;
  access(transaction);
  delay += memory_delay();
  return tlm::TLM_COMPLETED;
}

void PlainMemory::b_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay) {
  access(transaction);
  delay += memory_delay();
}

void PlainMemory::access(tlm::tlm_generic_payload& transaction) {
  const std::uint64_t address = transaction.get_address();
  const std::uint64_t length = transaction.get_data_length();
  transaction.set_response_status(tlm::TLM_OK_RESPONSE);
  if (address < base_ || address - base_ > kMemoryBytes - length) {
    ++(address == interrupt_address(Pid{0}).value() ? interrupts : stray_accesses);
    return;
  }
  std::uint8_t* here = bytes_.data() + (address - base_);
  if (transaction.is_read()) {
    std::memcpy(transaction.get_data_ptr(), here, length);
  } else {
    std::memcpy(here, transaction.get_data_ptr(), length);
  }
}

// ---------------------------------------------------------------------------------------------------------------- wire

Wire::Wire(const sc_core::sc_module_name& name, SimContext& context, PacketPool& packets, PayloadPool& payloads)
    : Component(name, context, Frequency::mhz(1000)),
      packets_(packets),
      payloads_(payloads),
      wake_(*this, "wake", [this] { run(); }) {}

void Wire::at(Time when, std::function<void()> action) {
  pending_.emplace(when.ps(), std::move(action));
  wake_.at(Time::from_ps(pending_.begin()->first));
}

void Wire::run() {
  while (!pending_.empty() && Time::from_ps(pending_.begin()->first) <= now()) {
    const std::function<void()> action = std::move(pending_.begin()->second);
    pending_.erase(pending_.begin());
    action();
  }
  if (!pending_.empty()) wake_.at(Time::from_ps(pending_.begin()->first));
}

void Wire::take(NodeId from, const Packet& packet, Time at) {
  Frame frame;
  encode_frame(packet, frame);
  if (all_) all_(from, frame);
  inject(std::move(frame), at);
}

void Wire::inject(Frame frame, Time when) {
  at(when, [this, frame = std::move(frame)] { arrive(frame); });
}

void Wire::arrive(const Frame& frame) {
  const auto decoded = decode_frame(frame.data(), frame.size());
  PacketPtr packet = packets_.acquire();
  NodeId destination = kVictim;
  if (decoded) {
    packet->transport = decoded->transport;
    packet->data = decoded->data;
    packet->ack = decoded->ack;
    destination = decoded->transport.destination;
    if (decoded->transport.type == PacketType::data && decoded->data.payload_length > 0) {
      packet->payload = payloads_.acquire(decoded->data.payload_length);
      std::memcpy(packet->payload->data(), decoded->payload, decoded->data.payload_length);
    }
  } else {
    ++not_frames;
    packet->transport.source = kHostile;
    packet->transport.destination = kVictim;
    packet->corrupted = true;
  }
  packet->wire_bytes = static_cast<std::uint32_t>(frame.size()) + kPreambleBytes + kFrameCheckBytes + kPacketGapBytes;
  ++delivered;
  if (destination == kHostile && hostile_) hostile_(frame);
  const auto sink = sinks_.find(destination.value());
  if (sink != sinks_.end()) sink->second->deliver(std::move(packet), now());
}

Time Uplink::earliest_start(std::uint32_t /*wire_bytes*/, Time not_before) { return std::max(not_before, free_at_); }

Time Uplink::send(PacketPtr packet, Time not_before) {
  const Time start = earliest_start(packet->wire_bytes, not_before);
  free_at_ = start + Time::from_ps(20) * packet->wire_bytes;
  wire_.take(from_, *packet, free_at_ + Time::from_ps(40'000));
  return start;
}

// ---------------------------------------------------------------------------------------------------------------- host

Host::Host(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config, NodeId id,
           std::uint64_t base, Wire& wire, PacketPool& packets, PayloadPool& payloads, const ObserverList& observers)
    : sc_module(name),
      memory("memory", base),
      rnic("rnic", context, {config, Bytes{kPage}, id}, packets, payloads, observers),
      uplink_("uplink", wire, id),
      next_head_(base ^ 0x7f00'0000'0000ULL) {
  rnic.dma.bind(memory.socket);
  cpu.bind(rnic.mmio);
  wire.attach(id, rnic.network_input());
  rnic.connect(uplink_, uplink_);
}

std::uint64_t Host::Region::address_of(std::uint64_t offset) const {
  const std::uint64_t position = head.value() % kPage + offset;
  return pages.at(position / kPage) + position % kPage;
}

Host::Region Host::make_region(std::uint64_t bytes, std::uint64_t skew) {
  Region region;
  region.head = VirtualAddress{next_head_ + skew};
  region.bytes = bytes;
  region.pages = memory.take_pages((skew + bytes + kPage - 1) / kPage);
  next_head_ += (region.pages.size() + 1) * kPage;
  const std::uint64_t list = memory.take_pages(1).front();
  region.list = PhysicalAddress{list};
  for (std::size_t i = 0; i < region.pages.size(); ++i) memory.host_store64(list + 8 * i, region.pages[i]);
  return region;
}

PhysicalAddress Host::make_word() {
  if (next_word_ % (kPage / kWordBytes) == 0) word_page_ = memory.take_pages(1);
  const std::uint64_t address = word_page_.front() + (next_word_++ % (kPage / kWordBytes)) * kWordBytes;
  memory.host_store64(address, 0);
  memory.host_store64(address + 8, 0);
  return PhysicalAddress{address};
}

void Host::command(const Descriptor& descriptor) {
  DescriptorBytes bytes = encode(descriptor);
  tlm::tlm_generic_payload transaction;
  transaction.set_command(tlm::TLM_WRITE_COMMAND);
  transaction.set_address(kInlineOffset);
  transaction.set_data_ptr(bytes.data());
  transaction.set_data_length(kDescriptorBytes);
  transaction.set_streaming_width(kDescriptorBytes);
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  cpu->nb_transport_fw(transaction, phase, delay);
  RVMA_ASSERT(transaction.get_response_status() == tlm::TLM_OK_RESPONSE, "an inline descriptor is taken");
}

}  // namespace rvma::hostile
