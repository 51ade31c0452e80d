// Core time, the NIC's queues, and what comes out of them.
#include "rdma/provider.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "rdma/provider_state.hpp"

namespace rvma {
namespace {

/// Counted pieces are no longer than this; nothing of this store is on a chip.
NicConfig software_windows(const NicConfig& nic) {
  NicConfig config = nic;
  config.mtu = Bytes{kPieceBytes};
  constexpr std::uint32_t kPlenty = 1U << 24U;
  // With spilling, as many catch-all windows could be open as a NIC's table holds.
  config.windows.spill = false;
  config.windows.on_chip = kPlenty;
  config.buffers.on_chip = kPlenty;
  config.counters.on_chip = kPlenty;
  config.binding.on_chip = kPlenty;
  return config;
}

constexpr std::uint32_t kWordBytes = 16;

}  // namespace

Provider::Provider(const sc_core::sc_module_name& name, SimContext& context, const Parameters& parameters,
                   MemoryIf& memory, FrameAllocator& frames, RdmaNicIf& nic, const ObserverList& observers)
    : Component(name, context, parameters.nic.clock),
      commands("commands"),
      mmio("mmio"),
      p_(parameters),
      windows_config_(software_windows(parameters.nic)),
      issue_(ClockDomain(parameters.host.core.clock).time(parameters.host.core.issue)),
      page_bytes_(parameters.host.page->count()),
      memory_(memory),
      nic_(nic),
      observers_(observers),
      frames_(frames),
      pinned_(frames),
      windows_(windows_config_),
      random_(context.seed(), path()),
      retry_(*this, "retry", [this] { retry_due(); }),
      reminder_(*this, "reminder", [this] { reminder_due(); }) {
  commands.register_b_transport(this, &Provider::b_transport);
  // What a call or a misfit makes due is taken where it is done, after observers know of it.
  windows_.on_expired([this] { reap(); });
  windows_.bind_all();
  if (p_.directory != nullptr) {
    std::vector<Provider*>& all = p_.directory->providers;
    if (all.size() <= p_.node.index()) all.resize(p_.node.index() + 1);
    all[p_.node.index()] = this;
  }
  nic_.on_placed([this](const RdmaNicIf::Placed& packet) { placed(packet); });
  context.stats().add(path(), stats_);
}

Provider::~Provider() = default;

void Provider::add_process(Core& core, AddressSpace& space, PhysicalAddress consumed_word) {
  const Pid pid{static_cast<std::uint16_t>(processes_.size())};
  const PhysicalAddress consumed = pinned_.allocate(kWordBytes);
  const auto write = [this, pid](const InlineCommand& command, Time delay) {
    write_.set_command(tlm::TLM_WRITE_COMMAND);
    write_.set_address(kMmioPageBytes * pid.value() + kInlineOffset);
    // The generic payload has one pointer for both directions; a write's target only reads through it.
    write_.set_data_ptr(const_cast<unsigned char*>(command.data()));
    write_.set_data_length(command.size());
    write_.set_streaming_width(command.size());
    write_.set_byte_enable_ptr(nullptr);
    write_.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    sc_core::sc_time at = SimContext::to_sc(delay);
    mmio->b_transport(write_, at);
    RVMA_ASSERT(write_.is_response_ok(), "the NIC accepts every write of its software");
  };
  processes_.push_back(std::make_unique<Process>(*this, pid, core, space, write, consumed));
  Process& process = *processes_.back();
  process.driver_consumed = consumed_word;
  process.rank = p_.first_rank.value() + pid.value();
  memory_.zero(consumed, kWordBytes);
  nic_.set_ring(pid, PhysicalAddress{}, p_.nic.command.depth, consumed);
  process.completion_queue = frames_.allocate_contiguous(std::uint64_t{p_.rdma.completion_queue} * kCqeBytes);
  nic_.set_completion_queue(pid, process.completion_queue, p_.rdma.completion_queue);
}

/// Every process has its receives posted and its management queue pair up before its program begins: what a library
/// does when it is initialised, at no cost here.
void Provider::end_of_elaboration() {
  for (const std::unique_ptr<Process>& process : processes_) {
    Descriptor create;
    create.opcode = Opcode::rdma_create_queue_pair;
    create.key = management_queue_pair(process->pid);
    nic_.prepare(create, process->pid);
    for (std::uint32_t i = 0; i < p_.rdma.receives; ++i) {
      process->receives.push_back(pinned_.allocate(kControlBytes));
      nic_.prepare(receive_of(*process, i), process->pid);
    }
  }
}

void Provider::start_of_simulation() {
  for (const std::unique_ptr<Process>& process : processes_) watch_queue(*process);
}

// ------------------------------------------------------------------------------------------------------- core time

void Provider::b_transport(int /*core*/, tlm::tlm_generic_payload& transaction, sc_core::sc_time& /*delay*/) {
  const std::uint64_t page = transaction.get_address() / kMmioPageBytes;
  const bool is_good = transaction.is_write() && transaction.get_address() % kMmioPageBytes == kInlineOffset &&
                       transaction.get_data_length() == kDescriptorBytes && page < processes_.size();
  if (!is_good) {
    transaction.set_response_status(tlm::TLM_GENERIC_ERROR_RESPONSE);
    return;
  }
  Item item;
  std::memcpy(item.descriptor.data(), transaction.get_data_ptr(), kDescriptorBytes);
  add_item(*processes_[page], item);
  transaction.set_response_status(tlm::TLM_OK_RESPONSE);
}

void Provider::add_item(Process& process, const Item& item) {
  const bool is_call = item.kind == ItemKind::descriptor;
  process.items.push(item);
  if (is_call) ++process.calls;
  stats_.queue.observe(process.items.size());
  if (!process.is_at_work) {
    arm(process);
  } else if (is_call && now() < process.begins) {
    begin_first(process);
  }
}

/// Begins with the first item as soon as the core is free.
void Provider::arm(Process& process) {
  if (process.items.empty()) return;
  process.is_at_work = true;
  process.waits_since = now();
  process.cost = cost_of(process, process.items.front()) + std::exchange(process.debt, Time::zero());
  stats_.busy_ns += process.cost;
  begin_first(process);
}

/// What comes from elsewhere waits until the program calls or waits again; a call is carried out when it is made,
/// behind all that has come before it.
void Provider::begin_first(Process& process) {
  process.begins = process.calls > 0 ? now() : std::max(now(), process.core.computing_until());
  process.wakeup.at(process.begins + process.cost);
}

void Provider::run(Process& process) {
  const Item item = process.items.pop();
  if (item.kind == ItemKind::descriptor) --process.calls;
  stats_.held_up_ns += process.begins - process.waits_since;
  perform(process, item);
  for (const auto& call : std::exchange(orphans_, {})) call();
  process.is_at_work = false;
  if (!process.items.empty()) {
    arm(process);
  } else {
    stats_.busy_ns += process.debt;
    process.debt = Time::zero();
  }
}

Time Provider::cost_of(const Process& process, const Item& item) const {
  const RdmaSoftwareConfig& software = p_.rdma.software;
  switch (item.kind) {
    case ItemKind::entry:
      return item.entry.kind == CqeKind::sent ? software.poll.get() : software.poll.get() + software.handle.get();
    case ItemKind::last_byte:
      return software.poll.get() + software.handle.get();
    case ItemKind::retry:
    case ItemKind::reminder:
      return software.handle;
    case ItemKind::descriptor:
      break;
  }
  const auto opcode = static_cast<Opcode>(item.descriptor[0]);
  if (opcode != Opcode::post_buffer && opcode != Opcode::post_one_time_buffer) return software.handle;
  const std::optional<Descriptor> call = decode_descriptor(item.descriptor);
  if (call && is_registered(process, *call)) return software.handle;
  const std::uint64_t pages =
      call ? (call->local.value() % page_bytes_ + std::max<std::uint64_t>(call->length, 1) - 1) / page_bytes_ : 0;
  return software.handle.get() + software.registration.get() +
         software.registration_page.get() * static_cast<std::int64_t>(pages);
}

void Provider::perform(Process& process, const Item& item) {
  switch (item.kind) {
    case ItemKind::descriptor: {
      const std::optional<Descriptor> descriptor = decode_descriptor(item.descriptor);
      RVMA_ASSERT(descriptor, "a driver wrote something that is no descriptor");
      write_words(process.driver_consumed, ++process.taken, 0);
      execute(process, *descriptor);
      return;
    }
    case ItemKind::entry:
      entry(process, item.entry);
      return;
    case ItemKind::last_byte:
      complete(item.number);
      return;
    case ItemKind::retry:
      ask(process, item.number);
      return;
    case ItemKind::reminder:
      remind(process, item.reminder);
      return;
  }
}

// --------------------------------------------------------------------------------------------------------- the NIC

/// A work request that the NIC has no entry for is held back here: in the NIC's queue it would stand before receives,
/// for which the peers' requests may wait that fill their NICs' tables; theirs would stand before those that these
/// need.
void Provider::post(Process& process, const Descriptor& descriptor) {
  if (is_work_request(descriptor.opcode)) {
    if (open_requests_ == p_.nic.transmit.open_puts) {
      waiting_requests_.push({process.pid, descriptor});
      return;
    }
    ++open_requests_;
  }
  process.debt += issue_;
  process.queue.post(descriptor, process.debt);
}

/// One that waited may go.
void Provider::entry_is_free() {
  --open_requests_;
  if (waiting_requests_.empty()) return;
  const auto [pid, work] = waiting_requests_.pop();
  post(process_of(pid), work);
}

Descriptor Provider::receive_of(const Process& process, std::uint32_t buffer) const {
  Descriptor receive;
  receive.opcode = Opcode::rdma_post_receive;
  const std::uint64_t at = process.receives[buffer].value();
  receive.local = VirtualAddress{at};
  receive.single_page = true;
  receive.page_list = PhysicalAddress{at - at % page_bytes_};
  receive.length = kControlBytes;
  receive.completion = PhysicalAddress{std::uint64_t{buffer} * kWordBytes};
  return receive;
}

void Provider::watch_queue(Process& process) {
  if (std::exchange(process.is_watching, true)) return;
  const std::uint64_t place = process.next_entry % p_.rdma.completion_queue;
  memory_.watch(PhysicalAddress{process.completion_queue.value() + place * kCqeBytes}, 8, [this, &process] {
    process.is_watching = false;
    take_entries(process);
    watch_queue(process);
  });
}

/// Everything that is there now; each entry costs its own poll.
void Provider::take_entries(Process& process) {
  for (;;) {
    const std::uint64_t place = process.next_entry % p_.rdma.completion_queue;
    const PhysicalAddress at{process.completion_queue.value() + place * kCqeBytes};
    CqeWords words;
    std::array<std::uint8_t, kCqeBytes> bytes{};
    memory_.read(at, bytes.data(), bytes.size());
    for (unsigned i = 0; i < 8; ++i) {
      words.first |= std::uint64_t{bytes.at(i)} << (8 * i);
      words.second |= std::uint64_t{bytes.at(8 + i)} << (8 * i);
    }
    if (words.first == 0) return;
    memory_.zero(at, kCqeBytes);
    ++process.next_entry;
    Item item;
    item.kind = ItemKind::entry;
    item.entry = decode_cqe(words);
    add_item(process, item);
  }
}

void Provider::entry(Process& process, const Cqe& cqe) {
  ++stats_.completion_entries;
  switch (cqe.kind) {
    case CqeKind::sent:
    case CqeKind::read:
      request_ended(process, cqe);
      return;
    case CqeKind::received:
      received(process, static_cast<std::uint32_t>(cqe.id / kWordBytes));
      return;
    case CqeKind::written:
      // A write with immediate uses a receive up, whose buffer stays empty.
      post(process, receive_of(process, static_cast<std::uint32_t>(cqe.id / kWordBytes)));
      complete(cqe.immediate);
      return;
    case CqeKind::none:
      return;
  }
}

std::uint32_t Provider::new_request(Process& process, const Request& request) {
  // Number 0 would ask for no completion entry: nobody gets it.
  if (process.requests.made() == 0) process.requests.take();
  const std::uint32_t number = process.requests.take();
  process.requests[number] = request;
  return number;
}

void Provider::request_ended(Process& process, const Cqe& cqe) {
  const auto number = static_cast<std::uint32_t>(cqe.id / kWordBytes);
  const Request request = process.requests[number];
  process.requests.give_back(number);
  entry_is_free();
  if (request.place != 0) connection(process, request.rank).open_places.erase(request.place);
  switch (request.kind) {
    case Request::Kind::control:
      pinned_.free(request.message, kControlBytes);
      said(process, request.rank, request.said, cqe.outcome);
      return;
    case Request::Kind::write:
      written(process, request.put, cqe.outcome);
      return;
    case Request::Kind::read:
      read_has_ended();
      if (cqe.outcome == Outcome::ok) {
        complete(process.puts[request.put].ticket);
      } else {
        give_up(process, request.put, cqe.outcome);
      }
      return;
  }
}

void Provider::write_words(PhysicalAddress to, std::uint64_t first, std::uint64_t second) {
  std::array<std::uint8_t, kWordBytes> bytes{};
  for (unsigned i = 0; i < 8; ++i) {
    bytes.at(i) = static_cast<std::uint8_t>(first >> (8 * i));
    bytes.at(8 + i) = static_cast<std::uint8_t>(second >> (8 * i));
  }
  memory_.write(to, bytes.data(), bytes.size());
}

}  // namespace rvma
