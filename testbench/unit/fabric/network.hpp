/// \file
/// A whole fabric with a sender and a receiver at every node, for tests of its behaviour.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.hpp"
#include "shapes.hpp"
#include "traffic.hpp"

namespace rvma::test {

struct Network {
  /// `receive_buffer` of every node; a topology file is written to the test's temporary directory.
  Network(SimContext& context, const ShapeCase& of, Bytes receive_buffer = Bytes::kib(64),
          ChannelUse use = ChannelUse::as_needed, const char* name = "fabric")
      : config(of.config), receivers(of.nodes) {
    if (!of.links.empty()) {
      // Tests run side by side, each in a process of its own.
      const std::string path = testing::TempDir() + "rvma_links_" + std::to_string(getpid());
      std::ofstream(path) << of.links;
      config.file.path = path;
    }
    std::vector<FabricAttachment> attachments;
    for (Receiver& receiver : receivers) attachments.push_back({&receiver, receive_buffer});
    fabric = std::make_unique<Fabric>(name, context, config, attachments, pool, use);
    if (!of.links.empty()) std::remove(config.file.path->c_str());
    for (std::uint32_t node = 0; node < of.nodes; ++node) {
      receivers[node].credit = &fabric->credit(NodeId{node});
      senders.push_back(std::make_unique<Sender>(fabric->link(NodeId{node})));
    }
  }

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(receivers.size()); }
  void push(std::uint32_t source, std::uint32_t destination, std::uint16_t payload_bytes) {
    senders[source]->push(data_packet(pool, source, destination, sent++, payload_bytes));
  }
  void start() {
    for (auto& sender : senders) sender->pump();
    sc_core::sc_start();
  }
  std::size_t received() const {
    std::size_t sum = 0;
    for (const Receiver& receiver : receivers) sum += receiver.arrivals.size();
    return sum;
  }
  /// Everything has arrived where it should, and every buffer is empty and paid back.
  void expect_drained() const {
    EXPECT_EQ(received() + fabric->stats().lost_down.value() + fabric->stats().lost_full.value(), sent);
    for (std::uint32_t node = 0; node < nodes(); ++node) {
      EXPECT_EQ(senders[node]->left(), 0U) << "node " << node;
      EXPECT_TRUE(receivers[node].ordered);
      for (const Arrival& arrival : receivers[node].arrivals) ASSERT_EQ(arrival.destination, NodeId{node});
    }
    for (const auto& at : fabric->switches()) EXPECT_EQ(at->queued(), 0U);
    for (const Link& link : fabric->links()) EXPECT_EQ(link.outstanding_bytes(), 0U);
    EXPECT_EQ(pool.in_use(), 0U);
  }

  FabricConfig config;
  PacketPool pool;
  std::deque<Receiver> receivers;
  std::unique_ptr<Fabric> fabric;
  std::vector<std::unique_ptr<Sender>> senders;
  std::uint32_t sent = 0;
};

}  // namespace rvma::test
