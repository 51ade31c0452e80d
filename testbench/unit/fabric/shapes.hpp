/// \file
/// Small shapes of every topology, for tests that hold for all of them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "fabric/topology.hpp"
#include "fabric/topology_file.hpp"

namespace rvma::test {

struct ShapeCase {
  std::string name;
  std::uint32_t nodes;
  FabricConfig config;
  std::string links;  ///< of topology file: its text

  friend std::ostream& operator<<(std::ostream& out, const ShapeCase& shape) { return out << shape.name; }
};

inline std::unique_ptr<Shape> make(const ShapeCase& of) {
  ErrorList errors;
  if (of.links.empty()) return make_shape(of.config, of.nodes, errors);
  LinkList links = parse_link_list(of.links, "links", errors);
  return std::make_unique<FileShape>(std::move(links), of.nodes);
}

inline ShapeCase star(std::uint32_t nodes) {
  ShapeCase out{"star" + std::to_string(nodes), nodes, {}, {}};
  out.config.topology = Topology::star;
  return out;
}
inline ShapeCase fat_tree(std::uint32_t levels, std::uint32_t arity, std::uint32_t taper, std::uint32_t nodes) {
  ShapeCase out{"fat_tree_" + std::to_string(levels) + "_" + std::to_string(arity) + "_" + std::to_string(taper) + "_" +
                    std::to_string(nodes),
                nodes,
                {},
                {}};
  out.config.topology = Topology::fat_tree;
  out.config.fat_tree.levels = levels;
  out.config.fat_tree.arity = arity;
  out.config.fat_tree.taper = taper;
  return out;
}
inline ShapeCase dragonfly(std::uint32_t p, std::uint32_t a, std::uint32_t h, std::uint32_t groups,
                           std::uint32_t nodes) {
  ShapeCase out{"dragonfly_" + std::to_string(p) + "_" + std::to_string(a) + "_" + std::to_string(h) + "_" +
                    std::to_string(groups) + "_" + std::to_string(nodes),
                nodes,
                {},
                {}};
  out.config.topology = Topology::dragonfly;
  out.config.dragonfly.p = p;
  out.config.dragonfly.a = a;
  out.config.dragonfly.h = h;
  out.config.dragonfly.groups = groups;
  return out;
}
inline ShapeCase torus(const std::string& dims, bool wrap, std::uint32_t per_switch, std::uint32_t nodes) {
  ShapeCase out{(wrap ? "torus_" : "mesh_") + dims + "_" + std::to_string(per_switch) + "_" + std::to_string(nodes),
                nodes,
                {},
                {}};
  out.config.topology = Topology::torus;
  out.config.torus.dims = *ValueText<Dimensions>::parse(dims);
  out.config.torus.wrap = wrap;
  out.config.torus.nodes_per_switch = per_switch;
  return out;
}
inline ShapeCase hyperx(const std::string& dims, std::uint32_t per_switch, std::uint32_t nodes) {
  ShapeCase out{"hyperx_" + dims + "_" + std::to_string(per_switch) + "_" + std::to_string(nodes), nodes, {}, {}};
  out.config.topology = Topology::hyperx;
  out.config.hyperx.dims = *ValueText<Dimensions>::parse(dims);
  out.config.hyperx.nodes_per_switch = per_switch;
  return out;
}
/// Five switches: a ring of four, a chord, a pair of parallel cables and a switch on a stalk without nodes.
inline ShapeCase file() {
  ShapeCase out{"file", 6, {}, {}};
  out.config.topology = Topology::file;
  out.links =
      "rvma-topology 1\n"
      "link 0 switch0\nlink 1 switch1\nlink switch2 2\nlink 3 switch3\nlink 4 switch0\nlink 5 switch2\n"
      "link switch0 switch1\nlink switch1 switch2 2\nlink switch2 switch3\nlink switch3 switch0\n"
      "link switch3 switch4\n";
  return out;
}

inline std::vector<ShapeCase> all_shapes() {
  return {star(9),
          fat_tree(1, 4, 1, 3),
          fat_tree(2, 4, 1, 16),
          fat_tree(3, 4, 2, 64),
          fat_tree(3, 2, 1, 5),
          fat_tree(4, 3, 1, 40),
          dragonfly(2, 4, 2, 9, 72),
          dragonfly(1, 4, 2, 3, 12),
          dragonfly(2, 3, 2, 5, 17),
          dragonfly(1, 2, 1, 2, 4),
          dragonfly(3, 4, 1, 1, 12),
          torus("8", true, 1, 8),
          torus("4x5", true, 2, 37),
          torus("3x4x2", true, 1, 24),
          torus("2x1x6", true, 1, 12),
          torus("4x3", false, 2, 24),
          hyperx("4x3", 2, 24),
          hyperx("3x3x2", 1, 11),
          hyperx("5", 3, 15),
          file()};
}

inline std::string case_name(const testing::TestParamInfo<ShapeCase>& of) {
  std::string name = of.param.name;
  return name;
}

}  // namespace rvma::test
