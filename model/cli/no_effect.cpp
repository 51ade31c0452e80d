#include "cli/no_effect.hpp"

#include <algorithm>
#include <string_view>

#include "fabric/fabric.hpp"
#include "rdma/idle_keys.hpp"

namespace rvma::cli {
namespace {

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

struct Rule {
  std::string_view prefix;  ///< of the keys concerned
  bool idle = false;        ///< nothing reads them in this run
  std::string_view why;
};

}  // namespace

std::vector<std::string> keys_without_effect(Config& config, std::uint32_t ranks, Protocol protocol) {
  const std::uint32_t per_node = config.workload.ranks_per_node;
  const std::uint32_t nodes = (ranks + per_node - 1) / per_node;
  const Topology topology = resolve(config.fabric.topology, nodes);
  const bool has_switch = topology != Topology::p2p;
  const bool has_one_path = !has_switch || topology == Topology::star;
  // RDMA's software writes each descriptor inline, whatever the mode (platform/system.cpp).
  const bool is_rdma = protocol == Protocol::rdma;
  const bool inline_mode = is_rdma || config.nic.command.mode.get() == CommandMode::inline_;
  const std::string another_shape = "the topology is " + ValueText<Topology>::print(topology);
  const Rule rules[] = {
      {"fabric.switch.", !has_switch, "there is no switch in topology p2p"},
      {"fabric.star.", topology != Topology::star, another_shape},
      {"fabric.fat_tree.", topology != Topology::fat_tree, another_shape},
      {"fabric.dragonfly.", topology != Topology::dragonfly, another_shape},
      {"fabric.torus.", topology != Topology::torus, another_shape},
      {"fabric.hyperx.", topology != Topology::hyperx, another_shape},
      {"fabric.file.", topology != Topology::file, another_shape},
      {"fabric.routing", has_one_path, "there is only one path between any two nodes"},
      {"fabric.faults.", nodes < 2, "there is only one node, and its packets turn round before the link"},
      {"fabric.link.", nodes < 2, "there is only one node, and its packets turn round before the link"},
      {"fabric.faults.reverse_hold", config.fabric.faults.reverse == 0U, "fabric.faults.reverse is 0"},
      {"nic.command.inline_payload", !inline_mode, "nic.command.mode is ring"},
      {"nic.command.fetch", inline_mode,
       is_rdma ? "RDMA's software writes its descriptors inline" : "nic.command.mode is inline"},
      {"nic.reliability.rnr_delay", config.nic.reliability.rnr_tries == 0U, "nic.reliability.rnr_tries is 0"},
  };
  std::vector<std::string> warnings;
  for (const KeyRef& key : keys_of(config)) {
    if (!key.key->set_by_user()) continue;
    for (const Rule& rule : rules) {
      if (!rule.idle || !starts_with(key.path, rule.prefix)) continue;
      warnings.push_back(key.path + " has no effect in this run: " + std::string{rule.why});
      break;
    }
  }
  return warnings;
}

std::vector<std::string> keys_of_other_protocol(Config& config, Protocol protocol) {
  std::vector<std::string> keys;
  const auto take = [&](const auto& prefixes) {
    for (const KeyRef& key : keys_of(config)) {
      const bool is_idle = std::any_of(prefixes.begin(), prefixes.end(),
                                       [&](KeyPrefix prefix) { return starts_with(key.path, prefix); });
      if (is_idle && key.key->set_by_user()) keys.push_back(key.path);
    }
  };
  if (protocol == Protocol::rdma) {
    take(kNotReadByRdma);
  } else {
    take(kNotReadByRvma);
  }
  return keys;
}

std::string describe_other_protocol(const std::vector<std::string>& keys, Protocol protocol) {
  std::string list;
  for (const std::string& key : keys) list += (list.empty() ? "" : ", ") + key;
  return list + (keys.size() == 1 ? " has" : " have") + " no effect in this run: the protocol is " +
         ValueText<Protocol>::print(protocol);
}

}  // namespace rvma::cli
