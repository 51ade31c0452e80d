#include "nic/rnic.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace rvma {

Rnic::Rnic(const sc_core::sc_module_name& name, SimContext& context, const Parameters& p, PacketPool& packets,
           PayloadPool& payloads, const ObserverList& observers)
    : Component(name, context, p.config.clock),
      dma("dma"),
      mmio("mmio"),
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
  mmio.register_b_transport(this, &Rnic::b_transport);
  mmio.register_nb_transport_fw(this, &Rnic::nb_transport_fw);
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

void Rnic::Input::deliver(PacketPtr packet, Time at) {
  latest_ = std::max(latest_, at);
  parser_.deliver(std::move(packet), latest_);
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

void Rnic::b_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay) {
  transaction.set_response_status(write_mmio(transaction, delay));
}

tlm::tlm_sync_enum Rnic::nb_transport_fw(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                         sc_core::sc_time& delay) {
  if (phase == tlm::BEGIN_REQ) transaction.set_response_status(write_mmio(transaction, delay));
  return tlm::TLM_COMPLETED;
}

tlm::tlm_response_status Rnic::write_mmio(const tlm::tlm_generic_payload& transaction, const sc_core::sc_time& delay) {
  if (!transaction.is_write()) return tlm::TLM_COMMAND_ERROR_RESPONSE;
  if (transaction.get_byte_enable_ptr() != nullptr) return tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE;
  const std::uint32_t length = transaction.get_data_length();
  if (transaction.get_streaming_width() < length) return tlm::TLM_BURST_ERROR_RESPONSE;
  const std::uint64_t page = transaction.get_address() / kMmioPageBytes;
  if (page > std::numeric_limits<Pid::representation>::max()) return tlm::TLM_ADDRESS_ERROR_RESPONSE;
  const Time at = now() + Time::from_ps(static_cast<std::int64_t>(delay.value()));
  const bool taken =
      command_.mmio_write(Pid{static_cast<Pid::representation>(page)}, transaction.get_address() % kMmioPageBytes,
                          transaction.get_data_ptr(), length, at);
  return taken ? tlm::TLM_OK_RESPONSE : tlm::TLM_GENERIC_ERROR_RESPONSE;
}

}  // namespace rvma
