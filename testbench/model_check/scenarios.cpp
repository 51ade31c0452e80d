#include "scenarios.hpp"

#include <utility>

namespace rvma::check {

namespace {

constexpr std::uint64_t kOne = kMtu - 24;       ///< a message of one packet
constexpr std::uint64_t kTwo = kMtu + 16;       ///< of two
constexpr std::uint64_t kThree = 2 * kMtu + 8;  ///< of three
constexpr std::uint64_t kLarge = 16 * kMtu;

std::vector<Action> every_event() {
  return {{Act::inc_epoch, 0, 0}, {Act::rewind, 0, 0},         {Act::rewind, 0, 1}, {Act::rewind, 0, 2},
          {Act::close, 0, 0},     {Act::new_generation, 0, 0}, {Act::silence, 0, 0}};
}

Scenario scenario(std::string name, std::vector<std::uint64_t> buffers, std::vector<MessageSpec> messages) {
  Scenario made;
  made.name = std::move(name);
  made.buffers = std::move(buffers);
  made.messages = std::move(messages);
  made.events = every_event();
  return made;
}

Scenario bytes(Scenario made, std::uint64_t threshold) {
  made.threshold = threshold;
  return made;
}

Scenario ops(Scenario made, std::uint64_t threshold) {
  made.counts_ops = true;
  made.threshold = threshold;
  return made;
}

Scenario managed(Scenario made) {
  made.is_managed = true;
  return made;
}

Scenario one_time(Scenario made) {
  made.is_one_time = true;
  return made;
}

Scenario with_key(Scenario made, std::uint32_t key) {
  made.key = key;
  return made;
}

Scenario with_entries(Scenario made, unsigned entries) {
  made.binding_entries = entries;
  return made;
}

Scenario forgetting(Scenario made) {
  made.table_forgets = true;
  return made;
}

MessageSpec from(unsigned sender, MessageSpec message) {
  message.sender = sender;
  return message;
}

/// Every kind of window, with messages of three, two and one packets, or as long as they are told to be.
std::vector<Scenario> kinds(std::uint64_t first, std::uint64_t second, std::uint64_t third) {
  const std::vector<MessageSpec> appended{{first}, {second}, {third}};
  const std::vector<std::uint64_t> three{kLarge, kLarge, kLarge};
  const std::uint64_t room = first + third;  // not for the second as well
  const std::vector<std::uint64_t> tight{room, room, room};
  return {
      // Each message an epoch of its own; two together; overshoot; never.
      ops(scenario("ops, one a buffer", three, {{first, 0}, {second, 16}, {third, 300}}), 1),
      ops(scenario("ops, two a buffer", three, {{first, 0}, {second, 16}, {third, 300}}), 2),
      bytes(scenario("bytes, overshoot", three, {{first, 0}, {second, 200}, {third, 400}}), kOne + 1),
      bytes(scenario("bytes, an exact sum", three, {{first, 0}, {second, 200}, {third, 400}}), first + third),
      ops(scenario("ops, one buffer only", {kLarge}, {{first, 0}, {second, 200}, {third, 400}}), 2),
      managed(ops(scenario("managed, ops, misfits", tight, appended), 3)),
      managed(bytes(scenario("managed, bytes, misfits", {room, second, room}, appended), second + 1)),
      managed(ops(scenario("managed, the last buffer", {room}, appended), 3)),
      one_time(ops(scenario("one-time", {kLarge}, {{first, 0}, {second, 200}, {third, 400}}), 2)),
      one_time(managed(bytes(scenario("one-time, managed", {room}, appended), room))),
  };
}

/// Refusals, full stores, two senders, messages of length 0.
std::vector<Scenario> corners(std::uint64_t first, std::uint64_t second) {
  const std::vector<std::uint64_t> two{kLarge, kLarge};
  const std::uint64_t room = first + kOne;
  return {
      ops(scenario("a message out of bounds", {room, room}, {{first, 0}, {second, room - kMtu}, {kOne, 0}}), 1),
      bytes(scenario("an offset that wraps", {room, room}, {{first, 0}, {second, ~std::uint64_t{0} - 8}, {kOne, 0}}),
            kMtu),
      with_key(ops(scenario("a wrong key", two, {{first, 0, 5}, {second, 0, 6}, {kOne, 0, 5}}), 1), 5),
      ops(scenario("no such mailbox", two, {{first, 0}, {second, 0, 0, false}, {kOne, 0}}), 2),
      ops(scenario("messages of length 0", {kMtu, kMtu, kMtu}, {{0, 0}, {second, 0}, {0, kMtu}}), 1),
      bytes(scenario("length 0 counts no bytes", {kLarge, kLarge}, {{0, 0}, {second, 0}, {first, 0}}), second),
      with_entries(ops(scenario("one binding entry", two, {{first, 0}, {second, 0}, {kOne, 0}}), 2), 1),
      with_entries(managed(ops(scenario("managed, one binding entry", {room, room}, {{first}, {second}, {kOne}}), 3)),
                   1),
      ops(scenario("two senders", two, {{first, 0}, from(1, {second, 0}), {kOne, 0}}), 2),
      managed(bytes(scenario("two senders, managed", {room, room}, {{first}, from(1, {second}), from(1, {kOne})}),
                    first + second)),
      forgetting(ops(scenario("lookups miss a closed window", two, {{first, 0}, {second, 0}, {kOne, 0}}), 2)),
  };
}

std::vector<Scenario> both(std::vector<Scenario> first, const std::vector<Scenario>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

std::vector<Scenario> short_scenarios() {
  std::vector<Scenario> scenarios = both(kinds(kTwo, kTwo, kOne), corners(kTwo, kTwo));
  return scenarios;
}

std::vector<Scenario> full_scenarios() {
  std::vector<Scenario> scenarios = both(kinds(kThree, kThree, kThree), corners(kThree, kThree));
  return both(std::move(scenarios), kinds(kThree, kTwo, kOne));
}

}  // namespace rvma::check
