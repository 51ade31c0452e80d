#include "nic/command_unit.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "host/interfaces.hpp"

namespace rvma {
namespace {

constexpr std::uint32_t kDoorbellBytes = 8;
constexpr std::uint32_t kWordBytes = 16;
constexpr std::uint32_t kLookBytes = 8;

/// Cycles for which a completion may queue between its decision and its write, beyond nic.completion.latency.
constexpr Cycles kFenceMargin{16};

// Tags of reads: descriptors of a process, or a word that is being armed.
constexpr std::uint64_t kLookTag = 1;
constexpr std::uint64_t fetch_tag(Pid pid, std::uint64_t number) {
  return number << 17U | std::uint64_t{pid.value()} << 1U;
}
constexpr std::uint64_t look_tag(std::uint32_t index) { return std::uint64_t{index} << 1U | kLookTag; }

std::uint64_t load64(const std::uint8_t* bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 8; ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
  return value;
}

DmaWrite word_write(PhysicalAddress to, std::uint64_t first, std::uint64_t second) {
  DmaWrite write;
  write.to.add(to, kWordBytes);
  write.word = {first, second};
  write.is_word = true;
  return write;
}

}  // namespace

CommandUnit::CommandUnit(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config,
                         PayloadPool& payloads, InterruptArm& arm)
    : Component(name, context, config.clock),
      dma("dma"),
      window_calls("window_calls"),
      transmit("transmit"),
      gets("gets"),
      work_requests("work_requests"),
      config_(config.command),
      fence_delay_(config.completion.latency.get() + kFenceMargin),
      payloads_(payloads),
      arm_(arm),
      fence_(*this, "fence", [this] { fence_due(); }),
      wake_(*this, "wake", [this] { run(); }) {
  RVMA_ASSERT(payloads.buffer_bytes() >= kDescriptorBytes, "payload buffers are smaller than a descriptor");
  context.stats().add(path(), stats_);
}

void CommandUnit::end_of_elaboration() {
  const auto room = [this] {
    for (const auto& process : processes_) {
      if (process && std::exchange(process->waits_for_room, false)) take_turn(*process);
    }
    if (!turn_.empty()) wake_.at(now());
  };
  transmit->on_room(room);
  if (gets.size() > 0) gets->on_room(room);
  if (work_requests.size() > 0) work_requests->on_room(room);
}

void CommandUnit::set_ring(Pid pid, PhysicalAddress base, std::uint32_t entries, PhysicalAddress consumed_word) {
  RVMA_ASSERT(entries >= 2 && (entries & (entries - 1)) == 0, "a command queue's entries are a power of two");
  Process& owner = process(pid);
  owner.ring = base;
  owner.entries = entries;
  owner.consumed_word = consumed_word;
}

CommandUnit::Process& CommandUnit::process(Pid pid) {
  if (pid.index() >= processes_.size()) processes_.resize(pid.index() + 1);
  std::unique_ptr<Process>& place = processes_[pid.index()];
  if (!place) {
    place = std::make_unique<Process>();
    place->pid = pid;
    place->entries = config_.depth;
  }
  return *place;
}

// ---------------------------------------------------------------------------------------------------------- arrival

bool CommandUnit::mmio_write(Pid pid, std::uint64_t offset, const std::uint8_t* bytes, std::uint32_t length, Time at) {
  const bool is_ring = config_.mode == CommandMode::ring;
  bool taken = false;
  if (is_ring && offset == kDoorbellOffset && length == kDoorbellBytes) taken = doorbell(process(pid), bytes, at);
  if (!is_ring && offset == kInlineOffset && length >= kDescriptorBytes) {
    taken = inline_descriptor(process(pid), bytes, length, at);
  }
  if (!taken) ++stats_.bad_writes;
  return taken;
}

bool CommandUnit::doorbell(Process& owner, const std::uint8_t* bytes, Time at) {
  ++stats_.doorbells;
  const std::uint64_t tail = load64(bytes);
  // A tail that goes back, or beyond what the ring can hold, announces nothing that could be fetched.
  if (owner.ring.value() == 0 || tail <= owner.tail || tail - owner.consumed > owner.entries) return false;
  owner.tail = tail;
  owner.doorbells.push({tail, at});
  fetch(owner, at);
  return true;
}

bool CommandUnit::inline_descriptor(Process& owner, const std::uint8_t* bytes, std::uint32_t length, Time at) {
  const auto payload_bytes = static_cast<std::uint32_t>(length - kDescriptorBytes);
  if (owner.commands.size() >= owner.entries || payload_bytes > config_.inline_payload->count()) return false;
  ++stats_.inline_descriptors;
  PayloadRef payload;
  if (payload_bytes > 0) {
    ++stats_.inline_payloads;
    payload = payloads_.acquire(payload_bytes);
    std::memcpy(payload->data(), bytes + kDescriptorBytes, payload_bytes);
  }
  queue_command(owner, bytes, std::move(payload), payload_bytes, at, at);
  wake_for(owner);
  return true;
}

void CommandUnit::fetch(Process& owner, Time at) {
  const auto most = std::min<std::uint64_t>(config_.fetch, payloads_.buffer_bytes() / kDescriptorBytes);
  const Time edge = clock().time_of(clock().edge_at_or_after(at));
  while (owner.fetched < owner.tail) {
    // One read never runs past the ring's end.
    const std::uint64_t slot = owner.fetched % owner.entries;
    const std::uint64_t count = std::min({most, owner.tail - owner.fetched, owner.entries - slot});
    Fetch next;
    next.bytes = payloads_.acquire(static_cast<std::uint32_t>(kDescriptorBytes * count));
    next.count = static_cast<std::uint32_t>(count);
    DmaRead read;
    read.from.add(PhysicalAddress{owner.ring.value() + kDescriptorBytes * slot},
                  static_cast<std::uint32_t>(kDescriptorBytes * count));
    read.into = next.bytes;
    read.tag = fetch_tag(owner.pid, owner.first_fetch + owner.fetches.size());
    owner.fetches.push(std::move(next));
    owner.fetched += count;
    ++stats_.fetches;
    dma->read(std::move(read), *this, edge);
  }
}

void CommandUnit::dma_read_done(std::uint64_t tag) {
  if ((tag & kLookTag) != 0) {
    look_done(static_cast<std::uint32_t>(tag >> 1U));
    return;
  }
  Process& owner = process(Pid{static_cast<std::uint16_t>(tag >> 1U)});
  owner.fetches[(tag >> 17U) - owner.first_fetch].done = true;
  fetches_arrived(owner);
}

/// Reads may be answered out of order; descriptors are not.
void CommandUnit::fetches_arrived(Process& owner) {
  while (!owner.fetches.empty() && owner.fetches.front().done) {
    const Fetch fetch = owner.fetches.pop();
    ++owner.first_fetch;
    stats_.fetched_descriptors += fetch.count;
    for (std::uint32_t i = 0; i < fetch.count; ++i) {
      while (owner.doorbells.front().tail <= owner.arrived) owner.doorbells.pop();
      queue_command(owner, fetch.bytes->data() + kDescriptorBytes * i, nullptr, 0, owner.doorbells.front().at, now());
      ++owner.arrived;
    }
  }
  wake_for(owner);
}

void CommandUnit::queue_command(Process& owner, const std::uint8_t* bytes, PayloadRef payload,
                                std::uint32_t payload_bytes, Time doorbell, Time at) {
  Command command;
  std::memcpy(command.bytes.data(), bytes, kDescriptorBytes);
  command.payload = std::move(payload);
  command.payload_bytes = payload_bytes;
  command.doorbell = doorbell;
  command.ready = clock().edge_at_or_after(at) + config_.latency;
  owner.commands.push(std::move(command));
  stats_.queue.observe(owner.commands.size());
}

void CommandUnit::wake_for(Process& owner) {
  if (owner.commands.empty() || owner.answer_due || owner.waits_for_room) return;
  take_turn(owner);
  wake_.at(std::max(clock().time_of(std::max(owner.commands.front().ready, next_cycle_)), now()));
}

void CommandUnit::take_turn(Process& owner) {
  if (std::exchange(owner.in_turn, true)) return;
  turn_.push(owner.pid.value());
}

// -------------------------------------------------------------------------------------------------------- execution

/// One round after another: each process with a due command executes one, a cycle each.
void CommandUnit::run() {
  const Cycles this_cycle = current_cycle();
  std::size_t not_due = 0;
  Cycles next_ready{std::numeric_limits<std::int64_t>::max()};
  while (turn_.size() > not_due) {
    Process& owner = *processes_[turn_.pop()];
    const Cycles ready = owner.commands.front().ready;
    const Cycles cycle = std::max(this_cycle, next_cycle_);
    if (ready > this_cycle || !execute(owner, cycle)) {
      if (owner.waits_for_room) {
        owner.in_turn = false;
      } else {
        // Not due yet, or a call that is due in a later cycle of its own.
        turn_.push(owner.pid.value());
        ++not_due;
        next_ready = std::min(next_ready, std::max(ready, next_cycle_));
      }
      continue;
    }
    not_due = 0;
    next_ready = Cycles{std::numeric_limits<std::int64_t>::max()};
    owner.in_turn = false;
    if (!owner.commands.empty() && !owner.answer_due) take_turn(owner);
  }
  if (!turn_.empty()) wake_.at(clock().time_of(next_ready));
}

TransmitIf* CommandUnit::taker_of(Opcode opcode) {
  if (opcode == Opcode::put) return transmit.operator->();
  if (opcode == Opcode::get) return gets.operator->();
  return is_work_request(opcode) ? work_requests.operator->() : nullptr;
}

bool CommandUnit::is_known(Opcode opcode) {
  if (work_requests.size() > 0) return is_rdma(opcode);
  return !is_rdma(opcode) && (opcode != Opcode::get || gets.size() > 0);
}

/// What transmits; false: no room.
bool CommandUnit::hand_over(Process& owner, TransmitIf& taker, const Descriptor& descriptor, Cycles cycle) {
  const Command& command = owner.commands.front();
  PutRequest request;
  request.descriptor = descriptor;
  request.payload = command.payload;
  request.pid = owner.pid;
  request.doorbell = command.doorbell;
  if (!taker.submit(request, cycle)) {
    ++stats_.put_waits;
    owner.waits_for_room = true;
    return false;
  }
  ++(descriptor.opcode == Opcode::put   ? stats_.puts
     : descriptor.opcode == Opcode::get ? stats_.gets
                                        : stats_.work_requests);
  return true;
}

bool CommandUnit::execute(Process& owner, Cycles cycle) {
  const Command& command = owner.commands.front();
  const Time at = clock().time_of(cycle);
  const std::optional<Descriptor> descriptor = decode_descriptor(command.bytes);
  const bool is_good = descriptor && is_known(descriptor->opcode) &&
                       command.payload_bytes == (descriptor->payload_follows ? descriptor->length : 0);
  // Puts that are due are handed on together, with their cycles; whatever decides about windows runs at its own cycle.
  const bool is_put = is_good && descriptor->opcode == Opcode::put;
  if (!is_put && at > now() && cycle > current_cycle()) return false;
  TransmitIf* const taker = is_good ? taker_of(descriptor->opcode) : nullptr;
  if (taker != nullptr && !hand_over(owner, *taker, *descriptor, cycle)) return false;
  // The command leaves its queue before anything can call back.
  const Command taken = owner.commands.pop();
  next_cycle_ = cycle + Cycles{1};
  stats_.execute.occupy(clock().time_of(next_cycle_) - at, 1);
  if (!is_good) {
    malformed(taken.bytes, at);
  } else if (descriptor->opcode == Opcode::arm_interrupt) {
    arm_interrupt(owner, *descriptor, at);
  } else if (taker == nullptr) {
    call(owner, *descriptor, cycle);
  }
  consumed(owner, at);
  return true;
}

void CommandUnit::call(Process& owner, const Descriptor& descriptor, Cycles cycle) {
  ++stats_.calls;
  owner.answer_due = true;
  window_calls->execute(descriptor, owner.pid, cycle,
                        [this, &owner, response = descriptor.response](const CallAnswer& call_answer) {
                          owner.answer_due = false;
                          answer(response, call_answer, clock().time_of(current_cycle()));
                          // In the middle of run() this is what run() does anyway.
                          wake_for(owner);
                        });
}

/// The word is armed first and looked at then; whoever takes it out of the armed set writes the one interrupt. A
/// completion that was decided before the arming may still be on its way to memory: the look waits until the posted
/// channel has taken everything up to now, which writing the consumed count once more tells.
void CommandUnit::arm_interrupt(Process& owner, const Descriptor& descriptor, Time at) {
  ++stats_.arms;
  arm_.arm(descriptor.completion);
  const std::uint32_t index = looks_.take();
  looks_[index].word = descriptor.completion;
  looks_[index].pid = owner.pid;
  answer(descriptor.response, {}, at);
  fences_.push({index, at + clock().time_of(fence_delay_)});
  fence_.at(fences_.front().due);
}

void CommandUnit::fence_due() {
  while (!fences_.empty() && fences_.front().due <= now()) {
    const std::uint32_t index = fences_.pop().look;
    const Process& owner = process(looks_[index].pid);
    if (owner.consumed_word.value() == 0) {
      look(index, now());
      continue;
    }
    DmaWrite fence = word_write(owner.consumed_word, owner.consumed, 0);
    fence.tag = look_tag(index);
    dma->write(std::move(fence), *this, now());
  }
  if (!fences_.empty()) fence_.at(fences_.front().due);
}

void CommandUnit::dma_written(std::uint64_t tag, Time entered, Time /*visible*/) {
  if ((tag & kLookTag) != 0) look(static_cast<std::uint32_t>(tag >> 1U), std::max(entered, now()));
}

void CommandUnit::look(std::uint32_t index, Time at) {
  Look& look = looks_[index];
  look.bytes = payloads_.acquire(kLookBytes);
  DmaRead read;
  read.from.add(look.word, kLookBytes);
  read.into = look.bytes;
  read.tag = look_tag(index);
  dma->read(std::move(read), *this, at);
}

void CommandUnit::look_done(std::uint32_t index) {
  const Look look = std::move(looks_[index]);
  looks_.give_back(index);
  if (load64(look.bytes->data()) == 0 || !arm_.take(look.word)) return;
  ++stats_.interrupts;
  dma->write(word_write(interrupt_address(look.pid), 0, 0), *this, now());
}

/// Anything may stand in a descriptor. If it can be told where the answer of the call would go, it gets one.
void CommandUnit::malformed(const DescriptorBytes& bytes, Time at) {
  ++stats_.malformed;
  const auto opcode = static_cast<Opcode>(bytes[0]);
  const bool known = bytes[0] >= static_cast<std::uint8_t>(Opcode::init_window) &&
                     bytes[0] <= static_cast<std::uint8_t>(Opcode::rdma_deregister);
  if (!known || opcode == Opcode::put || opcode == Opcode::get || is_work_request(opcode)) return;
  const PhysicalAddress response{load64(bytes.data() + kDescriptorBytes - 8)};
  if (response.value() % kWordBytes == 0) answer(response, {Status::bad_argument, 0}, at);
}

void CommandUnit::answer(PhysicalAddress response, const CallAnswer& call_answer, Time at) {
  if (response.value() == 0) return;
  dma->write(word_write(response, static_cast<std::uint64_t>(call_answer.status), call_answer.value), *this, at);
}

void CommandUnit::consumed(Process& owner, Time at) {
  ++owner.consumed;
  const std::uint32_t step = std::max(1U, owner.entries / 4);
  if (owner.consumed_word.value() == 0 || owner.consumed % step != 0) return;
  dma->write(word_write(owner.consumed_word, owner.consumed, 0), *this, at);
}

}  // namespace rvma
