#include "fabric/packet.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace rvma {

void intrusive_ptr_release(Payload* payload) {
  if (--payload->references_ > 0) return;
  --payload->pool_->in_use_;
  payload->pool_->free_[payload->size_class_].push_back(payload);
}

PayloadRef PayloadPool::acquire(std::uint32_t bytes) {
  RVMA_ASSERT(bytes <= buffer_bytes_, "a payload buffer longer than the mtu");
  constexpr std::uint32_t kSmallest = 64;
  const auto size_class = static_cast<std::uint8_t>(32 - __builtin_clz(std::max(bytes, kSmallest) - 1));
  if (size_class >= free_.size()) free_.resize(size_class + 1U);
  std::vector<Payload*>& free = free_[size_class];
  ++in_use_;
  if (!free.empty()) {
    Payload* payload = free.back();
    free.pop_back();
    return PayloadRef{payload};
  }
  auto payload = std::make_unique<Payload>();
  payload->capacity_ = static_cast<std::uint32_t>(
      std::min(std::uint64_t{1} << size_class, std::uint64_t{std::max(buffer_bytes_, kSmallest)}));
  // Left uninitialised: whoever fills the buffer touches only the bytes that it needs.
  payload->bytes_.reset(new std::uint8_t[payload->capacity_]);
  payload->size_class_ = size_class;
  payload->pool_ = this;
  owned_.push_back(std::move(payload));
  return PayloadRef{owned_.back().get()};
}

void Packet::recycle() {
  transport = TransportHeader{};
  data = DataHeader{};
  ack.cumulative = 0;
  ack.selective.clear();
  ack.outcomes_from = MessageId{};
  ack.outcomes.clear();
  ack.age_us = 0;
  payload.reset();
  wire_bytes = 0;
  corrupted = false;
  is_resent = false;
  route = RouteState{};
  left.fill(Time::zero());
}

void Packet::copy_to(Packet& copy) const { copy = *this; }

}  // namespace rvma
