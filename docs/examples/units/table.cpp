// The translation table alone: the plain class first, then the unit with its two ports, in simulated time.
#include <cstdint>
#include <iostream>
#include <systemc>

#include "nic/table_unit.hpp"
#include "nic/translation_table.hpp"

namespace {

rvma::TableCommand insert(std::uint64_t mailbox, std::uint16_t slot) {
  rvma::TableCommand command;
  command.operation = rvma::TableOperation::insert;
  command.mailbox = rvma::Mailbox{mailbox};
  command.slot = rvma::SlotId{slot};
  return command;
}

// How full a table of 4 x 64 x 2 places gets before it refuses an entry. No simulation kernel: the class keeps its own
// cycles.
void fill_plain_table() {
  rvma::TableConfig config;
  config.rows = 64;
  rvma::TranslationTable table(rvma::TableShape::from(config));
  std::uint64_t mailbox = 1;
  while (true) {
    table.advance_to(table.ready_cycle());
    const auto started = table.start(insert(mailbox * 4096, static_cast<std::uint16_t>(mailbox)));
    table.advance_to(started.answer_cycle);
    if (started.answer.status != rvma::TableStatus::ok) break;
    ++mailbox;
  }
  std::cout << "plain table: full after " << mailbox - 1 << " entries in " << table.shape().capacity()
            << " places and a stash of " << table.shape().stash << "\n";
  const rvma::LookupResult found = table.lookup({rvma::Pid{0}, rvma::Mailbox{7 * 4096}});
  std::cout << "plain table: mailbox 7 is in slot " << found.slot.value() << "\n";
}

// A lookup in the cycle of an insertion's answer finds the entry, one in the cycle before does not.
void watch_an_insertion() {
  rvma::SimContext context{1};
  const rvma::TableConfig config;
  rvma::ModelTableUnit unit("table", context, rvma::Frequency::mhz(1000), config);  // a cycle is a nanosecond
  const rvma::Mailbox mailbox{0xbeef};
  const rvma::Cycles ready{rvma::TableShape::from(config).reset_cycles()};
  const rvma::Cycles answer = ready + rvma::Cycles{5};
  unit.command(insert(mailbox.value(), 3), ready, [](const rvma::TableAnswer& told) {
    std::cout << "table unit: inserted after " << told.used.count() << " cycles\n";
  });
  unit.lookup(rvma::Pid{0}, mailbox, answer - rvma::Cycles{1});
  unit.lookup(rvma::Pid{0}, mailbox, answer);
  sc_core::sc_start(2, sc_core::SC_US);
  const bool before = unit.take().hit;
  const bool at = unit.take().hit;
  std::cout << "table unit: the cycle before: " << (before ? "hit" : "miss")
            << ", the cycle of the answer: " << (at ? "hit" : "miss") << "\n";
}

}  // namespace

int sc_main(int /*argc*/, char** /*argv*/) {
  fill_plain_table();
  watch_an_insertion();
  return 0;
}
