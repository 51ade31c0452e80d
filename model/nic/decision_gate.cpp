#include "nic/decision_gate.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace rvma {

DecisionGate::DecisionGate(const WindowStore& store, std::function<void()> wake)
    : store_(store), wake_(std::move(wake)) {}

bool DecisionGate::pass(PendingDecision& next) {
  const bool waits = waits_for_source(next) || waits_for_window(next) || waits_for_buffers(next);
  if (!waits) leave_line();
  progress_ = {};
  return !waits;
}

PendingDecision DecisionGate::take_ready() {
  const auto place = held_.find(ready_.pop().ticket);
  PendingDecision packet = std::move(place->second.packet);
  progress_ = std::move(place->second.progress);
  held_.erase(place);
  return packet;
}

void DecisionGate::decided(const PendingDecision& packet) {
  if (packet.is_pinned) around_.windows->unpin(packet.lookup.window);
}

DecisionGate::Ticket DecisionGate::hold(PendingDecision& packet) {
  const Ticket ticket = ++last_ticket_;
  held_.emplace(ticket, Held{std::move(packet), std::move(progress_)});
  return ticket;
}

void DecisionGate::make_ready(Ticket ticket) {
  PendingDecision& packet = held_.at(ticket).packet;
  packet.packet->stamp(Stage::context, SimContext::now());
  ready_.push({ticket, packet.ready});
  wake_();
}

// ------------------------------------------------------------------------------------------------------------- source

bool DecisionGate::waits_for_source(PendingDecision& packet) {
  if (around_.sources == nullptr || progress_.has_source) return false;
  progress_.has_source = true;
  if (around_.sources->has_context(*packet.packet)) return false;
  const Packet& waiting = *packet.packet;
  const Ticket ticket = hold(packet);
  around_.sources->fetch_context(waiting, [this, ticket] {
    // The table's answer is old by now.
    PendingDecision& held = held_.at(ticket).packet;
    const DataHeader& header = held.packet->data;
    if (around_.windows != nullptr && !held.lookup.sweeping) {
      held.lookup = around_.windows->find(header.destination_pid, header.mailbox);
    }
    make_ready(ticket);
  });
  return true;
}

// ------------------------------------------------------------------------------------------------------------- window

bool DecisionGate::waits_for_window(PendingDecision& packet) {
  const WindowLookup& lookup = packet.lookup;
  if (around_.windows == nullptr || progress_.has_window || lookup.hit || lookup.sweeping) return false;
  if (!around_.windows->has_spilled()) return false;
  // Only the first packet of a message needs the context: the others go where their message is bound.
  const DataHeader& header = packet.packet->data;
  const Pid pid = header.destination_pid;
  const Mailbox mailbox = header.mailbox;
  if (store_.is_closed(pid, mailbox) || !around_.delivery->is_first(*packet.packet)) return false;
  const Ticket ticket = hold(packet);
  const bool is_taken = around_.windows->fetch(
      pid, mailbox,
      [this, ticket](ContextIf::Fetched outcome, WindowId found) { window_found(ticket, outcome, found); });
  if (is_taken) return true;
  const auto place = held_.find(ticket);
  packet = std::move(place->second.packet);
  progress_ = std::move(place->second.progress);
  held_.erase(place);
  packet.lookup.sweeping = true;
  return false;
}

void DecisionGate::window_found(Ticket ticket, ContextIf::Fetched outcome, WindowId window) {
  Held& held = held_.at(ticket);
  held.progress.has_window = true;
  held.packet.waited_for_window = true;
  held.packet.is_pinned = outcome == ContextIf::Fetched::found;
  held.packet.lookup = {held.packet.is_pinned, window, outcome == ContextIf::Fetched::no_room};
  make_ready(ticket);
}

// ------------------------------------------------------------------------------------------- descriptors and counters

bool DecisionGate::waits_for_buffers(PendingDecision& packet) {
  if (around_.descriptors == nullptr || around_.counters == nullptr) return false;
  // 1. A later packet goes to the buffer of its message.
  if (around_.sources != nullptr) {
    const std::optional<std::uint32_t> binding = around_.sources->binding_of(*packet.packet);
    const std::optional<BufferId> buffer = binding ? store_.bound_buffer(*binding) : std::nullopt;
    if (buffer) return waits_for_bound_buffer(packet, *buffer);
  }
  // 2. A first one is decided by what its window has to offer, behind those of its window that wait already.
  if (!around_.delivery->is_first(*packet.packet)) return false;
  const WindowStore::Needs needs = store_.needs_of_first(packet.packet->data, packet.lookup);
  if (needs.empty()) return false;
  if (progress_.line && *progress_.line != needs.window) leave_line();
  const auto line = lines_.find(needs.window.value());
  if (!progress_.line && line != lines_.end()) {
    pin(packet, needs.window);
    progress_.line = needs.window;
    line->second.push_back(hold(packet));
    return true;
  }
  // 3. What is here, and what is not.
  std::vector<Part>& got = progress_.got;
  std::vector<Part> here;
  std::vector<Part> missing;
  const auto look = [&](SpilledCache* cache, BufferId buffer) {
    const Part part{cache, buffer.value()};
    if (std::find(got.begin(), got.end(), part) != got.end()) return;
    if (cache->lookup(buffer.value())) {
      if (cache->has_spilled()) here.push_back(part);
    } else {
      missing.push_back(part);
    }
  };
  for (const BufferId buffer : needs.descriptors) look(around_.descriptors, buffer);
  for (const BufferId buffer : needs.counters) look(around_.counters, buffer);
  if (missing.empty()) return false;
  for (const Part& part : missing) {
    if (part.cache->may_fetch(part.entry)) continue;
    part.cache->refused();
    packet.is_busy = true;
    return false;
  }
  // 4. All of it is read at once; the others of the window stand behind.
  got.insert(got.end(), here.begin(), here.end());
  pin(packet, needs.window);
  std::deque<Ticket>& its_line = lines_[needs.window.value()];
  if (!progress_.line) its_line.push_back(0);
  progress_.line = needs.window;
  its_line.front() = fetch(packet, missing);
  return true;
}

/// The context of the window stays until the packet has been decided about.
void DecisionGate::pin(PendingDecision& packet, WindowId window) {
  if (packet.is_pinned || around_.windows == nullptr || !around_.windows->pin(window)) return;
  packet.is_pinned = true;
  packet.lookup.window = window;
}

bool DecisionGate::waits_for_bound_buffer(PendingDecision& packet, BufferId buffer) {
  leave_line();
  const Part part{around_.descriptors, buffer.value()};
  const std::vector<Part>& got = progress_.got;
  if (std::find(got.begin(), got.end(), part) != got.end()) return false;
  if (around_.descriptors->lookup(buffer.value())) return false;
  fetch(packet, {part});
  return true;
}

DecisionGate::Ticket DecisionGate::fetch(PendingDecision& packet, const std::vector<Part>& missing) {
  progress_.pending = static_cast<std::uint32_t>(missing.size());
  const Ticket ticket = hold(packet);
  for (const Part& part : missing) {
    part.cache->fetch(part.entry, SpilledCache::Wait::to_decide, [this, ticket, part] {
      Progress& progress = held_.at(ticket).progress;
      progress.got.push_back(part);
      if (--progress.pending == 0) make_ready(ticket);
    });
  }
  return ticket;
}

/// The packet that passes does not stand in line any more; the next one is seen to.
void DecisionGate::leave_line() {
  if (!progress_.line) return;
  const auto line = lines_.find(progress_.line->value());
  progress_.line.reset();
  line->second.pop_front();
  if (line->second.empty()) {
    lines_.erase(line);
  } else {
    make_ready(line->second.front());
  }
}

}  // namespace rvma
