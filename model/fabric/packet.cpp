#include "fabric/packet.hpp"

namespace rvma {

void intrusive_ptr_release(Payload* payload) {
  if (--payload->references_ == 0) payload->pool_->free_.push_back(payload);
}

PayloadRef PayloadPool::acquire() {
  if (free_.empty()) {
    auto payload = std::make_unique<Payload>();
    // Left uninitialised: whoever fills the buffer touches only the bytes that it needs.
    payload->bytes_.reset(new std::uint8_t[buffer_bytes_]);
    payload->capacity_ = buffer_bytes_;
    payload->pool_ = this;
    free_.push_back(payload.get());
    owned_.push_back(std::move(payload));
    free_.reserve(owned_.capacity());
  }
  Payload* payload = free_.back();
  free_.pop_back();
  return PayloadRef{payload};
}

void Packet::recycle() {
  transport = TransportHeader{};
  data = DataHeader{};
  ack.cumulative = 0;
  ack.selective.clear();
  ack.outcomes_from = MessageId{};
  ack.outcomes.clear();
  payload.reset();
  wire_bytes = 0;
  corrupted = false;
  is_resent = false;
  is_duplicate = false;
  route = RouteState{};
  left.fill(Time::zero());
}

void Packet::copy_to(Packet& copy) const { copy = *this; }

}  // namespace rvma
