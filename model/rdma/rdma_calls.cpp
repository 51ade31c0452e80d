#include "rdma/rdma_calls.hpp"

namespace rvma {

RdmaCalls::RdmaCalls(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config,
                     RdmaState& state, StateCache& queue_pairs, StateCache& regions)
    : Component(name, context, config.clock), state_(state), queue_pairs_(queue_pairs), regions_(regions) {
  context.stats().add(path(), stats_);
}

void RdmaCalls::execute(const Descriptor& call, Pid pid, Cycles /*at*/, std::function<void(const CallAnswer&)> done) {
  ++stats_.calls;
  const Status status = perform(call, pid);
  if (status != Status::ok) ++stats_.failed;
  done({status, 0});
}

Status RdmaCalls::perform(const Descriptor& call, Pid pid) {
  switch (call.opcode) {
    case Opcode::rdma_register: {
      const Status status = state_.register_region(call);
      if (status == Status::ok) regions_.create(call.key);
      return status;
    }
    case Opcode::rdma_deregister: {
      const Status status = state_.deregister_region(call.key);
      if (status == Status::ok) regions_.erase(call.key);
      return status;
    }
    case Opcode::rdma_create_queue_pair: {
      const Status status = state_.create_queue_pair(call, pid);
      if (status == Status::ok) queue_pairs_.create(call.key);
      return status;
    }
    case Opcode::rdma_post_receive:
      ++stats_.receives;
      return state_.post_receive(call, pid);
    default:
      return Status::unsupported;
  }
}

}  // namespace rvma
