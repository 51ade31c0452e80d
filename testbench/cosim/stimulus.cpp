#include "stimulus.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace rvma::cosim {

namespace {

constexpr std::array<std::pair<KeyPattern, std::string_view>, 5> kNames{{{KeyPattern::random, "random"},
                                                                         {KeyPattern::sequential, "sequential"},
                                                                         {KeyPattern::pages, "pages"},
                                                                         {KeyPattern::few_bits, "few-bits"},
                                                                         {KeyPattern::same_bytes, "same-bytes"}}};

}  // namespace

std::string_view name_of(KeyPattern pattern) {
  for (const auto& [value, name] : kNames) {
    if (value == pattern) return name;
  }
  return "?";
}

std::optional<KeyPattern> key_pattern(std::string_view name) {
  for (const auto& [value, known] : kNames) {
    if (known == name) return value;
  }
  return std::nullopt;
}

TableKey key_at(KeyPattern pattern, std::uint64_t index, std::uint64_t salt) {
  std::uint64_t mailbox = 0;
  switch (pattern) {
    case KeyPattern::random: {
      const std::uint64_t pid = mix64(index ^ mix64(salt));
      return {Pid{static_cast<std::uint16_t>(pid)}, Mailbox{mix64(pid)}};
    }
    case KeyPattern::sequential:
      return {Pid{1}, Mailbox{0x10'0000 + index}};
    case KeyPattern::pages:
      return {Pid{static_cast<std::uint16_t>(index % 3)}, Mailbox{0x7f00'0000'0000ULL + index * 4096}};
    case KeyPattern::few_bits:
      for (unsigned bit = 0; bit < 20; ++bit) mailbox |= ((index >> bit) & 1U) << (bit * 7 % 64);
      return {Pid{0xffff}, Mailbox{~mailbox}};
    case KeyPattern::same_bytes:
      for (unsigned byte = 0; byte < 8; ++byte) mailbox |= ((index >> byte) & 1U) * (0x5aULL << (8 * byte));
      return {Pid{static_cast<std::uint16_t>(index >> 8U)}, Mailbox{mailbox}};
  }
  return {};
}

Stimulus::Stimulus(LockStep& checker, KeyPattern pattern, std::uint64_t seed)
    : checker_(checker),
      pattern_(pattern),
      random_(seed, "stimulus"),
      salt_(seed),
      universe_(std::uint64_t{4} * (checker.shape().capacity() + checker.shape().stash)),
      capacity_(checker.shape().capacity()) {}

void Stimulus::run(std::uint64_t operations) {
  // Commands of a phase: fewer where the table is tiny, so that resets and seeds come as often as elsewhere.
  const std::uint64_t turn = std::max(std::min<std::uint64_t>(200, 2 * capacity_), capacity_ / 16);
  const std::vector<std::function<void()>> phases = {
      [&] { fill(turn); },   [&] { fill(turn); },   [&] { churn(turn); },       [&] { churn(turn); },
      [&] { storm(turn); },  [&] { mixed(turn); },  [&] { mixed(turn); },       [&] { faults(turn); },
      [&] { faults(turn); }, [&] { faults(turn); }, [&] { compare_contents(); }};
  // First what a user does: fill, then live at a high load. Each round ends with what empties the table.
  fill(2 * capacity_);
  for (std::uint64_t round = 0; checker_.seen().operations() < operations && !failed(); ++round) {
    for (std::size_t i = 0; i < phases.size() && !failed(); ++i) phases[random_.below(phases.size())]();
    if (failed()) break;
    switch (round % 3) {
      case 0:
        reset();
        break;
      case 1:
        reseed();
        break;
      default:
        drain();
        break;
    }
    if (!failed() && random_.below(2) == 0) fill(2 * capacity_);
  }
  if (!failed()) compare_contents();
}

void Stimulus::compare_contents() {
  settle();
  if (!failed()) checker_.compare_contents();
}

void Stimulus::fill(std::uint64_t commands) {
  Traffic traffic = any_traffic();
  traffic.lookups = 1024;
  traffic.commands = 1024;
  full_answers_ = 0;
  for (std::uint64_t i = 0; i < commands && full_answers_ < 4 && !failed(); ++i) {
    give(1, traffic, &Stimulus::next_insert);
  }
}

void Stimulus::churn(std::uint64_t commands) { give(commands, any_traffic(), &Stimulus::next_replacement); }

void Stimulus::storm(std::uint64_t commands) {
  Traffic traffic = any_traffic();
  traffic.lookups = 1024;
  traffic.focus = 1024;
  give(commands, traffic, &Stimulus::next_of_few);
}

void Stimulus::mixed(std::uint64_t commands) { give(commands, any_traffic(), &Stimulus::any_command); }

void Stimulus::faults(std::uint64_t commands) {
  const TableShape& shape = checker_.shape();
  const std::uint32_t places = shape.capacity() + shape.stash;
  const std::uint32_t bits = shape.protection == EntryProtection::parity ? 98 : 97;
  for (std::uint64_t given = 0; given < commands && !failed();) {
    settle();
    if (failed()) return;
    const std::uint64_t flips = 1 + random_.below(std::max<std::uint64_t>(4, places / 64));
    for (std::uint64_t i = 0; i < flips; ++i) {
      const TableCopy copy = random_.below(2) == 0 ? TableCopy::a : TableCopy::b;
      const bool in_stash = shape.stash != 0 && random_.below(4) == 0;
      const std::uint32_t place =
          static_cast<std::uint32_t>(in_stash ? shape.capacity() + random_.below(shape.stash) : random_.below(places));
      checker_.corrupt(copy, place, static_cast<std::uint32_t>(random_.below(bits)));
    }
    const std::uint64_t burst = 1 + random_.below(commands);
    give(burst, any_traffic(), random_.below(2) == 0 ? &Stimulus::any_command : &Stimulus::next_replacement);
    given += burst;
  }
}

void Stimulus::drain() {
  const std::uint64_t keep = live_.size() / (2 + random_.below(8));
  const Traffic traffic = any_traffic();
  while (live_.size() > keep && !failed()) give(1, traffic, &Stimulus::next_erase);
}

void Stimulus::reseed() {
  TableCommand seed;
  seed.operation = TableOperation::load_seed;
  TableCommand flush;
  flush.operation = TableOperation::flush;
  const std::uint64_t rounds = 1 + random_.below(2);
  for (std::uint64_t round = 0; round < rounds && !failed(); ++round) {
    seed.seed = random_.next();
    run_command(seed);  // busy, as a rule
    if (random_.below(4) != 0) run_command(flush);
    if (random_.below(2) == 0) {
      // The table is empty again, without a flush: the count of entries is right.
      const std::uint64_t inserts = 1 + random_.below(4);
      for (std::uint64_t i = 0; i < inserts && !failed(); ++i) run_command(on_key(TableOperation::insert, any_key()));
      while (!live_.empty() && !failed()) run_command(next_erase());
    }
    for (std::uint64_t cycles = random_.below(4); cycles != 0; --cycles) checker_.step({});
    seed.seed = random_.next();
    run_command(seed);
  }
}

void Stimulus::reset() {
  // In the middle of whatever runs.
  const Traffic traffic = any_traffic();
  const std::uint64_t cycles = random_.below(60);
  for (std::uint64_t i = 0; i < cycles && !failed(); ++i) cycle(traffic, &Stimulus::any_command);
  checker_.reset();
  waiting_.reset();
  running_.reset();
  live_.clear();
  position_.clear();
}

void Stimulus::lose(std::uint64_t entries) {
  TableCommand flush;
  flush.operation = TableOperation::flush;
  run_command(flush);
  const TableCommand insert = on_key(TableOperation::insert, 0);
  for (std::uint64_t lost = 0; lost < entries && !failed(); ++lost) {
    run_command(insert);
    settle();
    if (failed()) return;
    // The key's lowest place: all are free, or bad, which counts as free.
    std::uint32_t place = 0;
    while (checker_.stored(TableCopy::b, place) == TableWord{}) ++place;
    checker_.corrupt(TableCopy::b, place, 0);
  }
  TableCommand seed;
  seed.operation = TableOperation::load_seed;
  run_command(seed);
}

// ------------------------------------------------------------------------------------------------------------ cycles

Stimulus::Traffic Stimulus::any_traffic() {
  constexpr std::array<std::uint32_t, 5> kRates{16, 256, 512, 1024, 1024};
  constexpr std::array<std::uint32_t, 4> kLookups{0, 128, 700, 1024};
  Traffic traffic;
  traffic.commands = kRates[random_.below(kRates.size())];
  traffic.lookups = kLookups[random_.below(kLookups.size())];
  traffic.focus = static_cast<std::uint32_t>(random_.below(1025));
  return traffic;
}

void Stimulus::give(std::uint64_t commands, const Traffic& traffic, NextCommand next) {
  const std::uint64_t until = checker_.seen().commands + commands;
  while (checker_.seen().commands < until && !failed()) cycle(traffic, next);
}

void Stimulus::run_command(const TableCommand& command) {
  finish_commands();
  waiting_ = command;
  finish_commands();
}

void Stimulus::finish_commands() {
  Traffic traffic;
  traffic.commands = 0;
  while ((waiting_ || running_) && !failed()) cycle(traffic, nullptr);
}

void Stimulus::settle() {
  finish_commands();
  if (!failed()) checker_.settle();
}

void Stimulus::cycle(const Traffic& traffic, NextCommand next) {
  TableInputs inputs;
  if (!waiting_ && chance(traffic.commands)) waiting_ = (this->*next)();
  if (waiting_) {
    inputs.command_valid = true;
    inputs.command = *waiting_;
  }
  if (chance(traffic.lookups)) {
    inputs.lookup_valid = true;
    std::uint64_t index = chance(traffic.absent) ? any_key() : live_key();
    if ((running_ || waiting_) && chance(traffic.focus)) index = running_ ? running_index_ : waiting_index_;
    inputs.lookup_key = key_at(pattern_, index, salt_);
  }
  const TableOutputs outputs = checker_.step(inputs);
  if (outputs.answer_valid) on_answer(outputs.answer);
  if (inputs.command_valid && outputs.command_ready) {
    running_ = std::exchange(waiting_, std::nullopt);
    running_index_ = waiting_index_;
  }
}

void Stimulus::on_answer(const TableAnswer& answer) {
  if (!running_) return;
  const TableOperation operation = running_->operation;
  running_.reset();
  const bool ok = answer.status == TableStatus::ok;
  if (answer.status == TableStatus::full) ++full_answers_;
  switch (operation) {
    case TableOperation::insert:
      if (ok || answer.status == TableStatus::exists) add(running_index_);
      break;
    case TableOperation::erase:
      remove(running_index_);
      break;
    case TableOperation::flush:
      live_.clear();
      position_.clear();
      break;
    default:
      break;
  }
}

// ---------------------------------------------------------------------------------------------------------- commands

TableCommand Stimulus::on_key(TableOperation operation, std::uint64_t index) {
  const TableKey key = key_at(pattern_, index, salt_);
  TableCommand command;
  command.operation = operation;
  command.pid = key.pid;
  command.mailbox = key.mailbox;
  command.slot = SlotId{static_cast<std::uint16_t>(random_.next())};
  command.seed = random_.next();
  waiting_index_ = index;
  return command;
}

TableCommand Stimulus::next_insert() {
  next_fresh_ = (next_fresh_ + 1) % universe_;
  return on_key(TableOperation::insert, next_fresh_);
}

TableCommand Stimulus::next_erase() { return on_key(TableOperation::erase, live_key()); }

TableCommand Stimulus::next_replacement() {
  return live_.size() * 10 < capacity_ * 9 ? on_key(TableOperation::insert, any_key()) : next_erase();
}

TableCommand Stimulus::next_of_few() {
  constexpr std::array<TableOperation, 4> kOperations{TableOperation::insert, TableOperation::erase,
                                                      TableOperation::update, TableOperation::find};
  return on_key(kOperations[random_.below(kOperations.size())], random_.below(3));
}

TableCommand Stimulus::any_command() {
  const std::uint64_t draw = random_.below(1000);
  if (draw < 450) return on_key(TableOperation::insert, any_key());
  if (draw < 600) return next_erase();
  if (draw < 650) return on_key(TableOperation::erase, any_key());
  if (draw < 750) return on_key(TableOperation::update, live_key());
  if (draw < 780) return on_key(TableOperation::update, any_key());
  if (draw < 960) return on_key(TableOperation::find, random_.below(2) == 0 ? live_key() : any_key());
  if (draw < 980) return on_key(TableOperation::load_seed, any_key());
  if (draw < 999 || random_.below(capacity_) > 64) {
    return on_key(static_cast<TableOperation>(6 + random_.below(3)), any_key());
  }
  return on_key(TableOperation::flush, any_key());
}

std::uint64_t Stimulus::any_key() { return random_.below(universe_); }

std::uint64_t Stimulus::live_key() { return live_.empty() ? any_key() : live_[random_.below(live_.size())]; }

void Stimulus::add(std::uint64_t index) {
  if (position_.emplace(index, live_.size()).second) live_.push_back(index);
}

void Stimulus::remove(std::uint64_t index) {
  const auto at = position_.find(index);
  if (at == position_.end()) return;
  const std::size_t position = at->second;
  position_.erase(at);
  if (position != live_.size() - 1) {
    live_[position] = live_.back();
    position_[live_[position]] = position;
  }
  live_.pop_back();
}

}  // namespace rvma::cosim
