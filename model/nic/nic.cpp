#include "nic/nic.hpp"

#include <limits>

#include "nic/descriptor.hpp"

namespace rvma {

Nic::Nic(const sc_core::sc_module_name& name, SimContext& context, Frequency clock)
    : Component(name, context, clock), dma("dma"), mmio("mmio") {
  mmio.register_b_transport(this, &Nic::b_transport);
  mmio.register_nb_transport_fw(this, &Nic::nb_transport_fw);
}

void Nic::b_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay) {
  transaction.set_response_status(write_mmio(transaction, delay));
}

tlm::tlm_sync_enum Nic::nb_transport_fw(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                        sc_core::sc_time& delay) {
  if (phase == tlm::BEGIN_REQ) transaction.set_response_status(write_mmio(transaction, delay));
  return tlm::TLM_COMPLETED;
}

tlm::tlm_response_status Nic::write_mmio(const tlm::tlm_generic_payload& transaction, const sc_core::sc_time& delay) {
  if (!transaction.is_write()) return tlm::TLM_COMMAND_ERROR_RESPONSE;
  if (transaction.get_byte_enable_ptr() != nullptr) return tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE;
  const std::uint32_t length = transaction.get_data_length();
  if (transaction.get_streaming_width() < length) return tlm::TLM_BURST_ERROR_RESPONSE;
  const std::uint64_t page = transaction.get_address() / kMmioPageBytes;
  if (page > std::numeric_limits<Pid::representation>::max()) return tlm::TLM_ADDRESS_ERROR_RESPONSE;
  const Time at = now() + Time::from_ps(static_cast<std::int64_t>(delay.value()));
  const bool taken =
      take_mmio_write(Pid{static_cast<Pid::representation>(page)}, transaction.get_address() % kMmioPageBytes,
                      transaction.get_data_ptr(), length, at);
  return taken ? tlm::TLM_OK_RESPONSE : tlm::TLM_GENERIC_ERROR_RESPONSE;
}

}  // namespace rvma
