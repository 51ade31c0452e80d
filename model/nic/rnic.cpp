#include "nic/rnic.hpp"

#include <algorithm>
#include <utility>

namespace rvma {

Rnic::Rnic(const sc_core::sc_module_name& name, SimContext& context, const Parameters& p, PacketPool& packets,
           PayloadPool& payloads, const ObserverList& observers)
    : Nic(name, context, p.config.clock),
      windows_(p.config),
      buffer_cache_(context, path() + ".buffer_cache", p.config.buffers, kBufferEntryBytes),
      counter_cache_(context, path() + ".counter_cache", p.config.counters, kCounterEntryBytes),
      receive_context_cache_(context, path() + ".receive_context_cache", p.config.peers, kPeerHeadBytes),
      transmit_context_cache_(context, path() + ".transmit_context_cache", p.config.peers, kPeerHeadBytes),
      table_(p.make_table("table", context, p.config.clock, p.config.table)),
      parser_("parser", context, p.config, p.node, observers),
      conversion_("conversion", context, p.config, p.page, p.node, windows_, observers),
      payload_writer_("payload_writer", context, p.config, p.node, observers),
      counters_("counters", context, p.config, p.node, windows_, observers),
      completion_writer_("completion_writer", context, p.config, p.node, observers),
      contexts_("contexts", context, p.config, windows_),
      store_caches_(buffer_cache_, counter_cache_, contexts_),
      counter_fetch_(counter_cache_, counters_),
      window_calls_("window_calls", context, p.config, p.node, windows_, contexts_, payloads, observers),
      delivery_("delivery", context, p.config, p.node, p.boot_number, packets),
      command_("command", context, p.config, payloads, arm_),
      transmit_("transmit", context, {p.config, p.page, p.node, p.boot_number, p.timing_only}, packets, payloads, arm_,
                observers),
      gets_("gets", context, p.config, p.page, p.node, windows_, contexts_, arm_, observers),
      egress_("egress", context, p.config, p.node, observers),
      input_(parser_),
      armed_completions_(arm_, completion_writer_, gets_),
      dma_engine_("dma_engine", context, p.config) {
  RVMA_ASSERT(p.boot_number > 0, "incarnation 0 means `not heard yet`");
  bind_units();
  bind_caches();
  set_spill_area(SpillArea::at({}, p.config));
  conversion_.number_ranks(p.ranks_per_node);
}

void Rnic::bind_units() {
  // 1. Host side.
  dma_engine_.dma.bind(dma);
  command_.dma(dma_engine_);
  window_calls_.dma(dma_engine_);
  transmit_.dma(dma_engine_);
  gets_.dma(dma_engine_);
  conversion_.dma(dma_engine_);
  payload_writer_.dma(dma_engine_);
  completion_writer_.dma(dma_engine_);
  // 2. Commands.
  command_.window_calls(window_calls_);
  command_.transmit(transmit_);
  command_.gets(gets_);
  gets_.transmit(transmit_);
  gets_.delivery(delivery_);
  transmit_.gets(gets_);
  gets_.on_request([this](NodeId asker) { return transmit_.keep_context(asker); });
  conversion_.gets(gets_);
  contexts_.table(*table_);
  contexts_.dma(dma_engine_);
  window_calls_.counters(counters_);
  window_calls_.delivery(delivery_);
  // 3. Receive path.
  parser_.lookup(*table_);
  parser_.conversion(conversion_);
  parser_.acknowledgements(transmit_);
  conversion_.lookup(*table_);
  conversion_.delivery(delivery_);
  conversion_.contexts(contexts_);
  conversion_.sources(delivery_);
  conversion_.writer(payload_writer_);
  payload_writer_.delivery(delivery_);
  payload_writer_.counter(counter_fetch_);
  counters_.delivery(delivery_);
  counters_.completions(armed_completions_);
  // 4. Transmit path.
  transmit_.egress(egress_);
  delivery_.egress(egress_);
  delivery_.bindings(conversion_);
  egress_.turn_round(input_);
  egress_.on_departure([this](const Egress::Departure& departure) { transmit_.departed(departure); });
}

void Rnic::bind_caches() {
  for (SpilledCache* cache : {&buffer_cache_, &counter_cache_, &receive_context_cache_, &transmit_context_cache_}) {
    cache->connect(dma_engine_);
  }
  windows_.on_changes(&store_caches_);
  conversion_.use_caches(buffer_cache_, counter_cache_);
  window_calls_.use_caches(buffer_cache_, counter_cache_);
  delivery_.use_cache(receive_context_cache_);
  transmit_.use_cache(transmit_context_cache_);
}

void Rnic::set_spill_area(const SpillArea& area) {
  contexts_.set_area(area.contexts.base, area.buckets.base);
  buffer_cache_.set_area(area.descriptors);
  counter_cache_.set_area(area.counters);
  receive_context_cache_.set_area(area.receive_contexts);
  transmit_context_cache_.set_area(area.transmit_contexts);
}

void Rnic::connect(LinkIf& link, LinkCreditIf& credit) {
  egress_.link(link);
  parser_.credit(credit);
  conversion_.credit(credit);
  payload_writer_.credit(credit);
}

bool Rnic::take_mmio_write(Pid pid, std::uint64_t offset, const std::uint8_t* bytes, std::uint32_t length, Time at) {
  return command_.mmio_write(pid, offset, bytes, length, at);
}

void Rnic::ArmedCompletions::complete(const Completion& completion, Cycles at) {
  if (completion.is_answer) {
    gets_.answer_complete(completion, at);
    return;
  }
  if (!arm_.take(completion.word) || completion.interrupt) {
    writer_.complete(completion, at);
    return;
  }
  Completion interrupting = completion;
  interrupting.interrupt = true;
  writer_.complete(interrupting, at);
}

}  // namespace rvma
