#include "explorer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
namespace rvma::check {

namespace {

constexpr unsigned kProbes = 3;

const char* name_of(Reason reason) {
  constexpr std::array names{"none", "ok", "no_mailbox", "closed", "bad_key", "stale", "no_buffer", "bounds", "busy"};
  return names.at(static_cast<std::size_t>(reason));
}

const char* name_of(Fate fate) {
  constexpr std::array names{"-", "placed", "refused", "discarded", "ignored"};
  return names.at(static_cast<std::size_t>(fate));
}

const char* name_of(CallStatus status) {
  constexpr std::array names{"-", "pending", "ok", "closed", "no_window", "no_buffer", "history"};
  return names.at(static_cast<std::size_t>(status));
}

std::string text_of(const Action& action) {
  switch (action.act) {
    case Act::arrive:
      return fmt::format("packet {} of message {} arrives", action.packet, action.message);
    case Act::again:
      return fmt::format("a duplicate of packet {} of message {} arrives", action.packet, action.message);
    case Act::resend:
      return fmt::format("packet {} of message {} is sent again, its acknowledgement was lost", action.packet,
                         action.message);
    case Act::land:
      return fmt::format("packet {} of message {} is written and counted", action.packet, action.message);
    case Act::hear:
      return fmt::format("an acknowledgement reaches sender {}", action.message);
    case Act::inc_epoch:
      return "inc_epoch";
    case Act::rewind:
      return fmt::format("rewind({})", action.packet);
    case Act::finish_rewind:
      return "the rewind's writes are visible";
    case Act::close:
      return "close_window";
    case Act::new_generation:
      return fmt::format("sender {} gives up and starts a new generation", action.message);
    case Act::silence:
      return fmt::format("sender {} has been silent for too long", action.message);
  }
  return "?";
}

std::string text_of(const std::vector<Epoch3>& epochs) {
  std::string text;
  for (const Epoch3& epoch : epochs) {
    text += fmt::format(" (epoch {}, buffer {}, {} bytes)", epoch.epoch, epoch.buffer, epoch.length);
  }
  return text.empty() ? " none" : text;
}

std::string text_of(const Observed& seen) {
  std::string text = fmt::format("packet {}", name_of(seen.fate));
  if (seen.reason != Reason::none) text += fmt::format(" {}", name_of(seen.reason));
  if (seen.buffer != kNowhere) text += fmt::format(" in buffer {} at {}", seen.buffer, seen.offset);
  text += "; completions" + text_of(seen.completions);
  if (seen.call != CallStatus::none) text += fmt::format("; call {} {}", name_of(seen.call), seen.call_value);
  for (const int buffer : seen.returned) text += fmt::format("; buffer {} returned", buffer);
  return text;
}

std::string text_of(const Snapshot& seen) {
  std::string text = seen.window_exists
                         ? fmt::format("window, get_epoch {}, history{}", seen.completed, text_of(seen.history))
                         : std::string{"no window"};
  if (seen.is_rewind_drained) text += "; the rewind waits for its zeros only";
  text += fmt::format("; words {} {} {}", seen.word[0], seen.word[1], seen.word[2]);
  for (unsigned sender = 0; sender < kSenders; ++sender) {
    text += fmt::format("; sender {}: acknowledged", sender);
    for (unsigned i = 0; i < kMostNumbers; ++i) {
      if (seen.disposed.at(sender).at(i)) text += fmt::format(" {}", i);
    }
    for (unsigned i = 0; i < kMostNumbers; ++i) {
      const Reason reason = seen.outcomes.at(sender).at(i);
      if (reason != Reason::none) text += fmt::format(", message {} {}", i, name_of(reason));
    }
  }
  return text;
}

/// Messages of one packet that fit any buffer and open any window of the check.
std::vector<MessageSpec> with_probes(const Scenario& scenario) {
  std::vector<MessageSpec> messages = scenario.messages;
  for (unsigned i = 0; i < kProbes; ++i) messages.push_back({1, 0, scenario.key, true, 0});
  return messages;
}

}  // namespace

std::string describe(const Scenario& scenario) {
  std::string text = fmt::format("{}: threshold {} {}, {}{}, buffers", scenario.name, scenario.threshold,
                                 scenario.counts_ops ? "ops" : "bytes", scenario.is_managed ? "managed" : "steered",
                                 scenario.is_one_time ? ", one-time" : "");
  for (const std::uint64_t size : scenario.buffers) text += fmt::format(" {}", size);
  text += ", messages";
  for (const MessageSpec& message : scenario.messages) text += fmt::format(" {}@{}", message.length, message.offset);
  return text;
}

Explorer::Explorer(const Scenario& scenario)
    : scenario_(scenario), messages_(with_probes(scenario)), config_(ModelUnderTest::config_of(scenario)) {}

Findings Explorer::explore(std::uint64_t most_states) {
  most_states_ = most_states;
  const State first{Reference{scenario_, messages_}, true};
  const ModelUnderTest model{scenario_, messages_, config_};
  note(first, model);
  visit(first, model);
  findings_.states = visited_.size();
  findings_.inner_states = inner_visited_.size();
  return findings_;
}

Explorer::News Explorer::note(const State& state, const ModelUnderTest& model) {
  const Digest of_reference = digest_of(state);
  Digester both;
  both.put(of_reference);
  both.put(model.inner_state());
  News news;
  news.inside = inner_visited_.insert(both.digest()).second;
  news.outside = news.inside && visited_.insert(of_reference).second;
  return news;
}

Digest Explorer::digest_of(const State& state) {
  std::string bytes;
  state.reference.pack(bytes);
  Digester out;
  out.put(state.event_left ? 1 : 0);
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word = 0;
    for (std::size_t k = i; k < std::min(i + 8, bytes.size()); ++k) {
      word = word << 8U | static_cast<std::uint8_t>(bytes[k]);
    }
    out.put(word);
  }
  return out.digest();
}

bool Explorer::is_stopped() {
  findings_.cut_short = most_states_ != 0 && visited_.size() >= most_states_;
  return findings_.cut_short || !findings_.failure.empty();
}

void Explorer::visit(const State& state, const ModelUnderTest& model) {
  if (!repeat_packets(state, model)) return;
  for (const Action& action : actions_of(state)) {
    if (is_stopped() || !take(state, model, action)) return;
  }
}

/// Packets that come again lead back to the same state, the model's inside as well: then one copy of it takes them all.
/// False: a difference.
bool Explorer::repeat_packets(const State& state, const ModelUnderTest& model) {
  State repeated = state;
  ModelUnderTest moved = model;
  const Digest inside = model.inner_state();
  bool is_same = true;
  for (const Action& action : repeats_of(state)) {
    if (is_stopped()) return false;
    if (is_same) {
      if (!agrees(state, action, repeated.reference.apply(action), moved)) return false;
      is_same = moved.inner_state() == inside;
    }
    if (is_same) {
      ++findings_.transitions;
    } else if (!take(state, model, action)) {
      return false;
    }
  }
  if (digest_of(repeated) == digest_of(state)) return true;
  throw std::logic_error("a packet that comes again has changed the reference");
}

/// Goes on where the action leads to something new. False: a difference.
bool Explorer::take(const State& state, const ModelUnderTest& model, const Action& action) {
  Observed expected;
  const State next = after(state, action, expected);
  ModelUnderTest moved = model;
  ++findings_.transitions;
  if (!agrees(state, action, expected, moved)) return false;
  const News news = note(next, moved);
  if (!news.inside) return true;
  if (!looks_right(action, next, moved)) return false;
  if (news.outside && !ends_well(Ending::probe, action, next, moved)) return false;
  if (has_all(next) && !ends_well(Ending::finish, action, next, moved)) return false;
  path_.push_back(action);
  visit(next, moved);
  path_.pop_back();
  return findings_.failure.empty();
}

/// Nothing is left to arrive or to land.
bool Explorer::has_all(const State& state) const {
  for (unsigned i = 0; i < scenario_.messages.size(); ++i) {
    for (unsigned k = 0; k < scenario_.messages[i].packets(); ++k) {
      if (!state.reference.is_disposed(i, k)) return false;
    }
  }
  return true;
}

// ------------------------------------------------------------------------------------------------- what may happen
// next

std::vector<Action> Explorer::repeats_of(const State& state) const {
  const Reference& reference = state.reference;
  std::vector<Action> actions;
  for (std::uint8_t i = 0; i < scenario_.messages.size(); ++i) {
    for (std::uint8_t k = 0; k < scenario_.messages[i].packets(); ++k) {
      if (reference.is_on_the_way(i, k)) actions.push_back({Act::again, i, k});
      if (reference.is_disposed(i, k)) actions.push_back({Act::resend, i, k});
    }
  }
  return actions;
}

std::vector<Action> Explorer::actions_of(const State& state) const {
  const Reference& reference = state.reference;
  std::vector<Action> actions;
  for (std::uint8_t i = 0; i < scenario_.messages.size(); ++i) {
    for (std::uint8_t k = 0; k < scenario_.messages[i].packets(); ++k) {
      if (!reference.has_arrived(i, k)) actions.push_back({Act::arrive, i, k});
      if (reference.is_on_the_way(i, k)) actions.push_back({Act::land, i, k});
    }
  }
  for (std::uint8_t sender = 0; scenario_.hears && sender < kSenders; ++sender) {
    if (reference.known_ended(sender) > reference.senders().oldest(sender)) actions.push_back({Act::hear, sender, 0});
  }
  if (reference.may_finish_rewind()) actions.push_back({Act::finish_rewind, 0, 0});
  if (state.event_left) actions.insert(actions.end(), scenario_.events.begin(), scenario_.events.end());
  return actions;
}

Explorer::State Explorer::after(const State& state, const Action& action, Observed& seen) const {
  State next = state;
  seen = next.reference.apply(action);
  const auto is_event = [&](const Action& event) {
    return event.act == action.act && event.message == action.message && event.packet == action.packet;
  };
  if (std::any_of(scenario_.events.begin(), scenario_.events.end(), is_event)) next.event_left = false;
  return next;
}

// -------------------------------------------------------------------------------------------------------- comparison

bool Explorer::agrees(const State& before, const Action& action, const Observed& expected, ModelUnderTest& model) {
  ending_.clear();
  const Observed seen = model.apply(action, before.reference.senders().arrival(action.message, action.packet));
  if (!(seen == expected)) {
    fail("the step itself", &action, "expected " + text_of(expected) + "\n  model    " + text_of(seen));
    return false;
  }
  model.acknowledge();
  return true;
}

bool Explorer::looks_right(const Action& action, const State& state, const ModelUnderTest& model) {
  const Snapshot should = state.reference.snapshot();
  const Snapshot is = ModelUnderTest{model}.snapshot();
  if (should == is) return true;
  fail("what shows after it", &action, "expected " + text_of(should) + "\n  model    " + text_of(is));
  return false;
}

bool Explorer::ends_well(Ending ending, const Action& action, const State& state, const ModelUnderTest& model) {
  ending_.clear();
  if (run(ending, state.reference, model)) return true;
  fail(ending == Ending::finish ? "the ending" : "the ending (probes, then all the rest)", &action, findings_.failure);
  return false;
}

bool Explorer::run(Ending ending, Reference reference, ModelUnderTest model) {
  if (ending == Ending::probe && !send_probes(reference, model)) return false;
  if (!drain(reference, model) || !finish_epochs(reference, model)) return false;
  if (ending == Ending::probe && reference.is_open()) {
    // In which order do all that are remembered come back?
    if (!step(reference, model, {Act::rewind, 0, static_cast<std::uint8_t>(reference.remembered())})) return false;
    if (reference.may_finish_rewind() && !step(reference, model, {Act::finish_rewind, 0, 0})) return false;
    if (!finish_epochs(reference, model)) return false;
  }
  // Whatever happened, nothing is bound to a window that has closed.
  if (reference.is_open() && !step(reference, model, {Act::close, 0, 0})) return false;
  if (reference.bound() == 0 && !reference.is_closing() && model.unaccounted() == 0) return true;
  findings_.failure = fmt::format("something is bound at the end: {} by the reference, {} in the model",
                                  reference.bound(), model.unaccounted());
  return false;
}

bool Explorer::step(Reference& reference, ModelUnderTest& model, const Action& action) {
  const Arrival arrival = reference.senders().arrival(action.message, action.packet);
  ending_.push_back(action);
  const Observed expected = reference.apply(action);
  const Observed seen = model.apply(action, arrival);
  if (!(expected == seen)) {
    findings_.failure = "expected " + text_of(expected) + "\n  model    " + text_of(seen);
    return false;
  }
  return true;
}

bool Explorer::send_probes(Reference& reference, ModelUnderTest& model) {
  for (std::size_t i = scenario_.messages.size(); i < messages_.size(); ++i) {
    const auto probe = static_cast<std::uint8_t>(i);
    if (!step(reference, model, {Act::arrive, probe, 0})) return false;
    if (reference.is_on_the_way(probe, 0) && !step(reference, model, {Act::land, probe, 0})) return false;
  }
  return true;
}

bool Explorer::drain(Reference& reference, ModelUnderTest& model) {
  for (const Act act : {Act::land, Act::arrive, Act::land}) {
    for (std::uint8_t i = 0; i < scenario_.messages.size(); ++i) {
      for (std::uint8_t k = 0; k < scenario_.messages[i].packets(); ++k) {
        const bool applies = act == Act::land ? reference.is_on_the_way(i, k) : !reference.has_arrived(i, k);
        if (applies && !step(reference, model, {act, i, k})) return false;
      }
    }
    if (reference.may_finish_rewind() && !step(reference, model, {Act::finish_rewind, 0, 0})) return false;
  }
  // Messages of a generation that was given up have lost packets for good.
  for (std::uint8_t sender = 0; sender < kSenders && reference.bound() > 0; ++sender) {
    if (!step(reference, model, {Act::silence, sender, 0})) return false;
  }
  return true;
}

bool Explorer::finish_epochs(Reference& reference, ModelUnderTest& model) {
  for (unsigned i = 0; i <= kMostBuffers; ++i) {
    if (!step(reference, model, {Act::inc_epoch, 0, 0})) return false;
  }
  const Snapshot should = reference.snapshot();
  const Snapshot is = model.snapshot();
  if (should == is) return true;
  findings_.failure = "expected " + text_of(should) + "\n  model    " + text_of(is);
  return false;
}

void Explorer::fail(const std::string& what, const Action* last, const std::string& difference) {
  std::string text = fmt::format("{}\n", describe(scenario_));
  std::size_t number = 0;
  for (const Action& step : path_) text += fmt::format("  {}. {}\n", ++number, text_of(step));
  text += fmt::format("  {}. {}\n", ++number, text_of(*last));
  for (const Action& step : ending_) text += fmt::format("  then {}\n", text_of(step));
  findings_.failure = text + fmt::format("differs in {}:\n  {}", what, difference);
}

}  // namespace rvma::check
