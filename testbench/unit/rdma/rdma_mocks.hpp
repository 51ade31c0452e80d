/// \file
/// Surroundings of the RDMA NIC's units that those of the RNIC do not have.
#pragma once

#include <utility>

#include "receive_mocks.hpp"

namespace rvma::test {

/// Page lists lie in memory; reads of queue pair contexts and regions take their time and carry no bytes.
class EntryDma : public FakeDma {
 public:
  EntryDma(SimContext& context, Script& script) : FakeDma("dma", context, script), script_(script) {}
  void read(DmaRead read, DmaClient& client, Time at) override {
    if (read.into != nullptr) {
      FakeDma::read(std::move(read), client, at);
      return;
    }
    reads.push_back({read.from.segments.at(0).address, read.from.segments.at(0).bytes, at});
    script_.at(at + read_time, [tag = read.tag, &client] { client.dma_read_done(tag); });
  }

 private:
  Script& script_;
};

}  // namespace rvma::test
