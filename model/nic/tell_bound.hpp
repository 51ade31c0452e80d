/// \file
/// Tells observers what became of a message's first packet: the RNIC's address conversion and the software that binds
/// messages on an RDMA NIC say it in the same words.
#pragma once

#include "nic/observer.hpp"
#include "nic/window_store.hpp"

namespace rvma {

/// `bound` is not malformed.
void tell_bound(const ObserverList& observers, NodeId node, const MessageRef& message, std::uint64_t message_length,
                const BindAnswer& bound, Time at);

}  // namespace rvma
