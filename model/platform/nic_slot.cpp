#include "platform/nic_slot.hpp"

#include <string>
#include <utility>

#include "base/error.hpp"

namespace rvma {

/// What one incarnation plugs into.
class NicSlot::Bay : public LinkIf, public LinkCreditIf {
 public:
  Bay(NicSlot& slot, std::uint32_t index)
      : dma(("bay_dma" + std::to_string(index)).c_str()),
        mmio(("bay_mmio" + std::to_string(index)).c_str()),
        slot_(slot),
        index_(index) {
    dma.register_nb_transport_fw(&slot, &NicSlot::forward, static_cast<int>(index));
  }

  // LinkIf. A dead RNIC finds the link always free, and what it sends is gone.
  Time earliest_start(std::uint32_t wire_bytes, Time not_before) override {
    return slot_.is_live(index_) ? slot_.link_->earliest_start(wire_bytes, not_before) : not_before;
  }
  Time send(PacketPtr packet, Time not_before) override {
    if (!slot_.is_live(index_)) return not_before;
    return slot_.link_->send(std::move(packet), not_before);
  }
  void on_credit(std::function<void()> ready) override { ready_ = std::move(ready); }
  void credit_came() {
    if (ready_) ready_();
  }
  // LinkCreditIf. The space belongs to the slot: it comes back even from a dead RNIC.
  void return_credit(std::uint32_t wire_bytes, Time at) override { slot_.credit_->return_credit(wire_bytes, at); }

  tlm_utils::simple_target_socket_tagged<NicSlot> dma;
  tlm_utils::simple_initiator_socket<NicSlot> mmio;
  Nic* nic = nullptr;

 private:
  NicSlot& slot_;
  std::uint32_t index_;
  std::function<void()> ready_;
};

NicSlot::NicSlot(const sc_core::sc_module_name& name, std::uint32_t incarnations)
    : sc_module(name), dma("dma"), mmio("mmio") {
  RVMA_ASSERT(incarnations > 0, "a slot without an RNIC");
  for (std::uint32_t i = 0; i < incarnations; ++i) bays_.push_back(std::make_unique<Bay>(*this, i));
  dma.register_nb_transport_bw(this, &NicSlot::backward);
  mmio.register_b_transport(this, &NicSlot::mmio_transport);
  mmio.register_nb_transport_fw(this, &NicSlot::mmio_forward);
}

NicSlot::~NicSlot() = default;

void NicSlot::insert(std::uint32_t index, Nic& nic) {
  Bay& bay = *bays_.at(index);
  RVMA_ASSERT(bay.nic == nullptr, "two RNICs in one bay");
  bay.nic = &nic;
  nic.dma.bind(bay.dma);
  bay.mmio.bind(nic.mmio);
  nic.connect(bay, bay);
}

void NicSlot::connect(LinkIf& link, LinkCreditIf& credit) {
  link_ = &link;
  credit_ = &credit;
  link.on_credit([this] {
    if (alive_) bays_[current_]->credit_came();
  });
}

void NicSlot::power_off() {
  RVMA_ASSERT(alive_, "power was off already");
  alive_ = false;
}

void NicSlot::power_on(Time deaf_until) {
  RVMA_ASSERT(!alive_ && current_ + 1 < bays_.size(), "no further incarnation was planned");
  ++current_;
  alive_ = true;
  deaf_until_ = deaf_until;
}

void NicSlot::deliver(PacketPtr packet, Time at) {
  if (alive_ && at >= deaf_until_) {
    bays_[current_]->nic->network_input().deliver(std::move(packet), at);
    return;
  }
  losses_.lose(*packet);
  credit_->return_credit(packet->wire_bytes, at);
}

// ----------------------------------------------------------------------------------------------------- host side

tlm::tlm_sync_enum NicSlot::forward(int index, tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                    sc_core::sc_time& delay) {
  if (phase != tlm::BEGIN_REQ) return dma->nb_transport_fw(transaction, phase, delay);
  const auto incarnation = static_cast<std::uint32_t>(index);
  if (!is_live(incarnation)) {
    transaction.set_response_status(tlm::TLM_OK_RESPONSE);
    return tlm::TLM_COMPLETED;
  }
  asked_by_[&transaction] = incarnation;
  const tlm::tlm_sync_enum answer = dma->nb_transport_fw(transaction, phase, delay);
  if (answer == tlm::TLM_COMPLETED) asked_by_.erase(&transaction);
  return answer;
}

tlm::tlm_sync_enum NicSlot::backward(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) {
  const auto found = asked_by_.find(&transaction);
  RVMA_ASSERT(found != asked_by_.end(), "the host answers what nobody asked");
  const std::uint32_t index = found->second;
  if (phase == tlm::BEGIN_RESP) asked_by_.erase(found);
  return bays_[index]->dma->nb_transport_bw(transaction, phase, delay);
}

void NicSlot::mmio_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay) {
  if (alive_) {
    bays_[current_]->mmio->b_transport(transaction, delay);
    return;
  }
  transaction.set_response_status(tlm::TLM_OK_RESPONSE);  // a posted write that nobody takes
}

tlm::tlm_sync_enum NicSlot::mmio_forward(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                         sc_core::sc_time& delay) {
  if (alive_) return bays_[current_]->mmio->nb_transport_fw(transaction, phase, delay);
  transaction.set_response_status(tlm::TLM_OK_RESPONSE);
  return tlm::TLM_COMPLETED;
}

}  // namespace rvma
