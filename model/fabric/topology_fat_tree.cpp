#include "fabric/topology_fat_tree.hpp"

#include "base/error.hpp"

namespace rvma {

FatTreeShape::FatTreeShape(const FatTreeConfig& config, std::uint32_t nodes)
    : Shape(nodes), arity_(config.arity), up_(config.arity / config.taper) {
  Level level;
  do {
    level.first += level.switches;
    if (!levels_.empty()) level.copies *= up_;
    level.span *= arity_;
    level.subtrees = (nodes + level.span - 1) / level.span;
    level.switches = level.subtrees * level.copies;
    levels_.push_back(level);
  } while (level.subtrees > 1);
  RVMA_ASSERT(levels_.size() <= config.levels, "more nodes than the fat tree holds");
}

FatTreeShape::Place FatTreeShape::place(SwitchId at) const {
  std::uint32_t level = 0;
  while (at.value() >= levels_[level].first + levels_[level].switches) ++level;
  const std::uint32_t index = at.value() - levels_[level].first;
  return {level, index / levels_[level].copies, index % levels_[level].copies};
}

Port FatTreeShape::ports(SwitchId at) const { return is_top(place(at).level) ? arity_ : arity_ + up_; }

PortEnd FatTreeShape::end(SwitchId at, Port port) const {
  const Place here = place(at);
  if (port >= arity_) {
    const Level& above = levels_[here.level + 1];
    return PortEnd::of_switch(above.first + here.subtree / arity_ * above.copies + here.copy * up_ + (port - arity_),
                              here.subtree % arity_);
  }
  const std::uint32_t child = here.subtree * arity_ + port;
  if (here.level == 0) return child < nodes() ? PortEnd::of_node(child) : PortEnd{};
  const Level& below = levels_[here.level - 1];
  if (child >= below.subtrees) return PortEnd{};
  return PortEnd::of_switch(below.first + child * below.copies + here.copy / up_, arity_ + here.copy % up_);
}

std::uint32_t FatTreeShape::distance(SwitchId at, SwitchId target) const {
  // Up to the first level whose subtree holds the target, and down again.
  const Place here = place(at);
  const std::uint32_t node = target.value() * arity_;
  std::uint32_t level = here.level;
  std::uint32_t subtree = here.subtree;
  while (node / levels_[level].span != subtree) {
    subtree /= arity_;
    ++level;
  }
  return (level - here.level) + level;
}

void FatTreeShape::minimal(SwitchId at, SwitchId target, std::vector<Port>& outputs) const {
  const Place here = place(at);
  const std::uint32_t node = target.value() * arity_;
  if (node / levels_[here.level].span == here.subtree) {
    outputs.push_back(node / levels_[here.level - 1].span % arity_);
    return;
  }
  for (Port up = 0; up < up_; ++up) outputs.push_back(arity_ + up);
}

Port FatTreeShape::static_output(SwitchId at, SwitchId target, NodeId /*source*/, NodeId destination) const {
  const Place here = place(at);
  const std::uint32_t node = target.value() * arity_;
  if (node / levels_[here.level].span == here.subtree) return node / levels_[here.level - 1].span % arity_;
  const std::uint32_t below = here.level == 0 ? 1 : levels_[here.level - 1].span;
  return arity_ + destination.value() / below % up_;
}

}  // namespace rvma
