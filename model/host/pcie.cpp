#include "host/pcie.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/int128.hpp"

namespace rvma {

namespace {

using detail::uint128;

constexpr std::uint64_t kDllpBytes = 8;
constexpr std::uint64_t kSkipBytes = 4;
constexpr std::uint64_t kSkipIntervalBytes = 1538;
constexpr std::uint64_t kInternalDelaySymbols = 115;
constexpr std::uint64_t kAckTlpOverheadBytes = 28;

/// Ten times the specification's AckFactor.
std::uint64_t ack_factor_tenths(std::uint32_t lanes, std::uint64_t max_payload) {
  if (lanes < 8) return max_payload < 512 ? 14 : 10;
  if (lanes < 16) return max_payload < 512 ? 25 : 10;
  return max_payload < 512 ? 30 : 20;
}

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

bool is_power_of_two(std::uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

Time from_sc(const sc_core::sc_time& time) { return Time::from_ps(static_cast<std::int64_t>(time.value())); }

/// Whether payload may be passed; a target that finds no extension treats the write as strictly ordered.
BurstExtension* burst_of(const tlm::tlm_generic_payload& transaction) {
  return transaction.get_extension<BurstExtension>();
}

}  // namespace

// ------------------------------------------------------------------------------------------------------ arithmetic

Rate PcieLink::line_rate(std::uint32_t generation, std::uint32_t lanes) {
  constexpr std::uint64_t kGeneration3BitsPerS = 8'000'000'000;
  const std::uint64_t raw = (kGeneration3BitsPerS << (generation - 3)) * lanes;
  return Rate::from_bits_per_s(generation < 6 ? raw / 130 * 128 + raw % 130 * 128 / 130 : raw / 256 * 242);
}

Rate PcieLink::tlp_rate(std::uint32_t generation, std::uint32_t lanes, Bytes max_payload) {
  const std::uint64_t payload = max_payload.count();
  const std::uint64_t limit =
      (payload + kAckTlpOverheadBytes) * ack_factor_tenths(lanes, payload) / (10ULL * lanes) + kInternalDelaySymbols;
  // 1 - 2 x 8/limit - 4/1538, over the common denominator.
  const std::uint64_t whole = limit * kSkipIntervalBytes;
  const std::uint64_t left = whole - 2 * kDllpBytes * kSkipIntervalBytes - kSkipBytes * limit;
  const uint128 rate = uint128{line_rate(generation, lanes).bits_per_s()} * left / whole;
  return Rate::from_bits_per_s(static_cast<std::uint64_t>(rate));
}

std::uint64_t PcieLink::tlps(std::uint64_t address, std::uint64_t bytes, std::uint64_t most_bytes) {
  std::uint64_t count = 0;
  while (bytes > 0) {
    const std::uint64_t to_boundary = kAddressBoundaryBytes - (address & (kAddressBoundaryBytes - 1));
    const std::uint64_t piece = std::min(bytes, to_boundary);
    count += divide_up(piece, most_bytes);
    address += piece;
    bytes -= piece;
  }
  return count;
}

// ---------------------------------------------------------------------------------------------------- construction

Pcie::Pcie(const sc_core::sc_module_name& name, SimContext& context, const HostConfig& config, MemoryIf& memory)
    : Component(name, context, config.core.clock.get()),
      device_dma("device_dma"),
      core_mmio("core_mmio"),
      device_mmio("device_mmio"),
      memory_(memory),
      max_payload_(config.pcie.max_payload->count()),
      max_read_request_(config.pcie.max_read_request->count()),
      read_latency_(config.pcie.read_latency),
      write_latency_(config.pcie.write_latency),
      relaxed_ordering_(config.pcie.relaxed_ordering),
      upstream_(PcieLink::tlp_rate(config.pcie.generation, config.pcie.lanes, config.pcie.max_payload)),
      downstream_(upstream_.rate()),
      channels_(config.memory),
      free_headers_(config.pcie.posted_headers.get()),
      free_data_(config.pcie.posted_data->count() / PcieLink::kDataCreditBytes),
      all_headers_(free_headers_),
      all_data_(free_data_),
      wakeup_(*this, "read", [this] { respond_due(); }) {
  RVMA_ASSERT(is_power_of_two(max_payload_), "host.pcie.max_payload is a power of two");
  RVMA_ASSERT(is_power_of_two(max_read_request_), "host.pcie.max_read_request is a power of two");
  RVMA_ASSERT(is_power_of_two(config.pcie.lanes), "host.pcie.lanes is a power of two");
  // The smallest TLP carries one byte; the one under way when the time began counts as well.
  const uint128 drained_bits = uint128{upstream_.rate().bits_per_s()} * static_cast<std::uint64_t>(kDrain.ps());
  const std::uint64_t drained_bytes = static_cast<std::uint64_t>(drained_bits / 8'000'000'000'000ULL);
  draining_tlps_ = drained_bytes / (PcieLink::kWriteOverheadBytes + 1) + 1;
  draining_data_ = drained_bytes / PcieLink::kDataCreditBytes + draining_tlps_;
  // A TLP of the largest size must always find credits, or it could never start.
  all_data_ = std::max(all_data_, max_payload_ / PcieLink::kDataCreditBytes);
  free_data_ = all_data_;

  device_dma.register_nb_transport_fw(this, &Pcie::dma_nb_transport);
  device_dma.register_b_transport(this, &Pcie::dma_b_transport);
  device_dma.register_transport_dbg(this, &Pcie::dma_debug_transport);
  core_mmio.register_nb_transport_fw(this, &Pcie::mmio_nb_transport);
  core_mmio.register_b_transport(this, &Pcie::mmio_b_transport);
  context.stats().add(path(), stats_);
}

/// Reads that were never answered: their owner gets the transactions back.
Pcie::~Pcie() {
  for (std::size_t i = 0; i < reads_.size(); ++i) {
    if (reads_[i].acquired) reads_[i].transaction->release();
  }
}

// ------------------------------------------------------------------------------------------------------ transports

bool Pcie::accept(tlm::tlm_generic_payload& transaction) {
  const std::uint64_t end = transaction.get_address() + transaction.get_data_length();
  if (transaction.get_data_length() == 0 || transaction.get_streaming_width() < transaction.get_data_length()) {
    transaction.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
  } else if (transaction.get_byte_enable_ptr() != nullptr) {
    transaction.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
  } else if (end < transaction.get_address() ||                                           // wraps
             (transaction.is_read() && end > kInterruptWindow) ||                         // interrupts cannot be read
             (transaction.get_address() < kInterruptWindow && end > kInterruptWindow)) {  // half in, half out
    transaction.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  } else {
    return true;
  }
  return false;
}

tlm::tlm_sync_enum Pcie::dma_nb_transport(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                          sc_core::sc_time& delay) {
  const Time start = now() + from_sc(delay);
  if (phase == tlm::END_RESP) {
    response_pending_ = false;
    response_free_at_ = start;
    arm();
    return tlm::TLM_COMPLETED;
  }
  RVMA_ASSERT(phase == tlm::BEGIN_REQ, "an initiator sends BEGIN_REQ or END_RESP");
  if (transaction.get_command() == tlm::TLM_IGNORE_COMMAND) {
    transaction.set_response_status(tlm::TLM_OK_RESPONSE);
    return tlm::TLM_COMPLETED;
  }
  if (!accept(transaction)) return tlm::TLM_COMPLETED;
  if (transaction.is_write()) {
    delay = SimContext::to_sc(post_write(transaction, start) - now());
    return tlm::TLM_COMPLETED;
  }
  delay = SimContext::to_sc(request_read(transaction, nullptr, start) - now());
  phase = tlm::END_REQ;
  return tlm::TLM_UPDATED;
}

void Pcie::dma_b_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay) {
  const Time start = now() + from_sc(delay);
  if (transaction.get_command() == tlm::TLM_IGNORE_COMMAND) {
    transaction.set_response_status(tlm::TLM_OK_RESPONSE);
  } else if (!accept(transaction)) {
    return;
  } else if (transaction.is_write()) {
    delay = SimContext::to_sc(post_write(transaction, start) - now());
  } else {
    sc_core::sc_event done;
    request_read(transaction, &done, start);
    sc_core::wait(done);
    context().count_activation();
    delay = sc_core::SC_ZERO_TIME;
  }
}

/// Reads and writes what is visible now, in no time; for debuggers and loaders.
unsigned Pcie::dma_debug_transport(tlm::tlm_generic_payload& transaction) {
  if (transaction.get_data_ptr() == nullptr || !accept(transaction)) return 0;
  const PhysicalAddress address{transaction.get_address()};
  if (address.value() >= kInterruptWindow) return 0;
  if (transaction.is_read()) memory_.read(address, transaction.get_data_ptr(), transaction.get_data_length());
  if (transaction.is_write()) memory_.write(address, transaction.get_data_ptr(), transaction.get_data_length());
  return transaction.get_data_length();
}

tlm::tlm_sync_enum Pcie::mmio_nb_transport(int core, tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                           sc_core::sc_time& delay) {
  RVMA_ASSERT(phase == tlm::BEGIN_REQ, "every MMIO access completes at its request");
  mmio_b_transport(core, transaction, delay);
  return tlm::TLM_COMPLETED;
}

void Pcie::mmio_b_transport(int /*core*/, tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay) {
  if (transaction.get_command() == tlm::TLM_IGNORE_COMMAND) {
    transaction.set_response_status(tlm::TLM_OK_RESPONSE);
  } else if (transaction.is_read()) {
    transaction.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
  } else if (accept(transaction)) {
    send_mmio(transaction, now() + from_sc(delay));
  }
}

// ---------------------------------------------------------------------------------------------------------- writes

Time Pcie::post_write(tlm::tlm_generic_payload& transaction, Time start) {
  BurstExtension* burst = burst_of(transaction);
  const bool to_memory = transaction.get_address() < kInterruptWindow;
  // 1. The burst's TLPs enter the posted channel, each when there are credits for it.
  Time memory_wait;
  const Time entered =
      send_posted(transaction.get_address(), transaction.get_data_length(), start, to_memory, memory_wait);
  ++stats_.dma_writes;
  // 2. Visible: a strictly ordered write after every earlier one, a relaxed one independently of them.
  Time visible = entered + write_latency_ + memory_wait;
  const bool relaxed = burst != nullptr && burst->relaxed_ordering && relaxed_ordering_;
  if (!relaxed) visible = std::max(visible, last_visible_);
  last_visible_ = std::max(last_visible_, visible);
  // 3. Memory applies the bytes at that time.
  if (burst != nullptr) burst->visible = visible;
  transaction.set_response_status(tlm::TLM_OK_RESPONSE);
  memory_.post(transaction, visible);
  return entered;
}

/// Sends the burst's TLPs; returns the end of the last, and the longest wait for a memory channel.
Time Pcie::send_posted(std::uint64_t address, std::uint64_t bytes, Time start, bool to_memory, Time& memory_wait) {
  const std::uint64_t tlps = PcieLink::tlps(address, bytes, max_payload_);
  // Credits go by TLP. Where they are ample for bursts of this size, one step for the whole burst gives the same times.
  const std::uint64_t units = bytes / PcieLink::kDataCreditBytes + tlps;
  const bool ample = draining_tlps_ + 2 * tlps <= all_headers_ && draining_data_ + 2 * units <= all_data_;
  if (ample) return send_unit(address, bytes, tlps, start, to_memory, memory_wait);
  Time end = start;
  while (bytes > 0) {
    const std::uint64_t to_boundary =
        PcieLink::kAddressBoundaryBytes - (address & (PcieLink::kAddressBoundaryBytes - 1));
    const std::uint64_t piece = std::min({bytes, to_boundary, max_payload_});
    end = send_unit(address, piece, 1, end, to_memory, memory_wait);
    address += piece;
    bytes -= piece;
  }
  return end;
}

/// One TLP, or a whole burst for which credits are ample.
Time Pcie::send_unit(std::uint64_t address, std::uint64_t bytes, std::uint64_t tlps, Time start, bool to_memory,
                     Time& memory_wait) {
  // 1. Credits.
  const std::uint64_t data =
      tlps == 1 ? divide_up(bytes, PcieLink::kDataCreditBytes) : bytes / PcieLink::kDataCreditBytes + tlps;
  start = wait_for_credits(tlps, data, start);
  // 2. The bus.
  const std::uint64_t wire_bytes = bytes + tlps * PcieLink::kWriteOverheadBytes;
  const Serializer::Slot slot = upstream_.occupy(wire_bytes, start);
  stats_.upstream_tlps += tlps;
  stats_.upstream_payload_bytes += bytes;
  stats_.upstream_wire_bytes += wire_bytes;
  stats_.upstream.occupy(slot.end - slot.start, wire_bytes * 8);
  // 3. The memory channels; a write that waits for one keeps its place in the host's queue.
  Time wait;
  if (to_memory) {
    const MemoryChannels::Access access = channels_.write(PhysicalAddress{address}, bytes, slot.end);
    wait = access.wait;
    stats_.memory.occupy(access.busy, bytes * 8);
    stats_.memory_wait_ns += wait;
  }
  memory_wait = std::max(memory_wait, wait);
  // 4. The credits come back in order.
  free_headers_ -= tlps;
  free_data_ -= data;
  Time back_at = slot.end + wait + kDrain;
  if (!lent_credits_.empty()) back_at = std::max(back_at, lent_credits_.back().back_at);
  lent_credits_.push_back(Credits{back_at, tlps, data});
  return slot.end;
}

/// Returns the earliest time from `start` on at which the channel is free and the credits are back.
Time Pcie::wait_for_credits(std::uint64_t headers, std::uint64_t data, Time start) {
  const Time channel_free = std::max(start, upstream_.free_at());
  Time ready = channel_free;
  while (!lent_credits_.empty() &&
         (lent_credits_.front().back_at <= ready || free_headers_ < headers || free_data_ < data)) {
    const Credits back = lent_credits_.pop_front();
    free_headers_ += back.headers;
    free_data_ += back.data;
    ready = std::max(ready, back.back_at);
  }
  RVMA_ASSERT(free_headers_ >= headers && free_data_ >= data, "a write needs no more credits than there are");
  if (ready > channel_free) {
    ++stats_.credit_stalls;
    stats_.credit_stalled_ns += ready - channel_free;
  }
  return ready;
}

// ----------------------------------------------------------------------------------------------------------- reads

Time Pcie::request_read(tlm::tlm_generic_payload& transaction, sc_core::sc_event* blocked, Time start) {
  const std::uint64_t address = transaction.get_address();
  const std::uint64_t bytes = transaction.get_data_length();
  // 1. The requests go upstream, behind the posted writes before them.
  const std::uint64_t requests = PcieLink::tlps(address, bytes, max_read_request_);
  const Serializer::Slot first = upstream_.occupy(PcieLink::kReadRequestBytes, start);
  Time left = first.end;
  if (requests > 1) left = upstream_.occupy((requests - 1) * PcieLink::kReadRequestBytes, left).end;
  ++stats_.dma_reads;
  stats_.upstream_tlps += requests;
  stats_.upstream_wire_bytes += requests * PcieLink::kReadRequestBytes;
  stats_.upstream.occupy(left - first.start, requests * PcieLink::kReadRequestBytes * 8);
  // 2. The first completion leaves after the host's latency, and not before every earlier write is visible: a read
  //    pushes posted writes. The other completions follow without a gap: their requests are shorter than they are.
  Read read;
  read.transaction = &transaction;
  read.blocked = blocked;
  read.started = first.start;
  read.ready = std::max(first.end + read_latency_, last_visible_);
  // 3. A completion is cut at the smaller of the two limits; a request's completions stay within it.
  read.completions = PcieLink::tlps(address, bytes, std::min(max_payload_, max_read_request_));
  read.wire_bytes = bytes + read.completions * PcieLink::kCompletionOverheadBytes;
  read.acquired = transaction.has_mm();
  if (read.acquired) transaction.acquire();
  reads_.push_back(read);
  if (reads_.size() == 1) arm();
  return left;
}

/// Gives the downstream channel to all completions that are ready by `until`; nothing that is sent from `until` on
/// may take their place.
void Pcie::schedule_completions(Time until) {
  for (; scheduled_reads_ < reads_.size() && reads_[scheduled_reads_].ready <= until; ++scheduled_reads_) {
    Read& read = reads_[scheduled_reads_];
    const Serializer::Slot slot = downstream_.occupy(read.wire_bytes, read.ready);
    read.done = slot.end;
    stats_.downstream_tlps += read.completions;
    stats_.downstream_payload_bytes += read.transaction->get_data_length();
    stats_.downstream_wire_bytes += read.wire_bytes;
    stats_.downstream.occupy(slot.end - slot.start, read.wire_bytes * 8);
    stats_.read_ns.add(read.done - read.started);
  }
}

void Pcie::respond_due() {
  schedule_completions(now());
  while (!response_pending_ && response_free_at_ <= now() && scheduled_reads_ > 0 && reads_.front().done <= now()) {
    const Read read = reads_.pop_front();
    --scheduled_reads_;
    respond(read);
  }
  arm();
}

void Pcie::respond(const Read& read) {
  tlm::tlm_generic_payload& transaction = *read.transaction;
  if (transaction.get_data_ptr() != nullptr) {
    memory_.read(PhysicalAddress{transaction.get_address()}, transaction.get_data_ptr(), transaction.get_data_length());
  }
  transaction.set_response_status(tlm::TLM_OK_RESPONSE);
  if (read.blocked != nullptr) {
    context().count_notification();
    read.blocked->notify(sc_core::SC_ZERO_TIME);
  } else {
    tlm::tlm_phase phase = tlm::BEGIN_RESP;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    response_pending_ = true;
    const tlm::tlm_sync_enum answer = device_dma->nb_transport_bw(transaction, phase, delay);
    const bool ended = answer == tlm::TLM_COMPLETED || (answer == tlm::TLM_UPDATED && phase == tlm::END_RESP);
    // An initiator may also have sent END_RESP on the forward path before it returned.
    if (ended && response_pending_) {
      response_pending_ = false;
      response_free_at_ = now() + from_sc(delay);
    }
  }
  if (read.acquired) transaction.release();
}

/// Arms for the oldest read's response. A read that is not scheduled yet may still be delayed by an MMIO write that
/// goes first; the wake-up then finds it unfinished and arms again.
void Pcie::arm() {
  if (reads_.empty() || response_pending_) return;
  Time done = reads_.front().done;
  if (scheduled_reads_ == 0) {
    Serializer ahead = downstream_;
    done = ahead.occupy(reads_.front().wire_bytes, reads_.front().ready).end;
  }
  wakeup_.at(std::max({done, response_free_at_, now()}));
}

// ------------------------------------------------------------------------------------------------------------ MMIO

void Pcie::send_mmio(tlm::tlm_generic_payload& transaction, Time start) {
  const std::uint64_t bytes = transaction.get_data_length();
  // 1. Completions that are ready go first.
  schedule_completions(start);
  // 2. The TLPs.
  const std::uint64_t tlps =
      PcieLink::tlps(transaction.get_address(), bytes, std::min(max_payload_, PcieLink::kWriteCombiningBytes));
  const std::uint64_t wire_bytes = bytes + tlps * PcieLink::kWriteOverheadBytes;
  const Serializer::Slot slot = downstream_.occupy(wire_bytes, start);
  ++stats_.mmio_writes;
  stats_.downstream_tlps += tlps;
  stats_.downstream_payload_bytes += bytes;
  stats_.downstream_wire_bytes += wire_bytes;
  stats_.downstream.occupy(slot.end - slot.start, wire_bytes * 8);
  // 3. The RNIC learns of it at once and takes effect at the annotated time: no event is spent here. The core does not
  //    wait for a posted write, so its own delay stays as it is.
  sc_core::sc_time delay = SimContext::to_sc(slot.end + write_latency_ - now());
  device_mmio->b_transport(transaction, delay);
}

}  // namespace rvma
