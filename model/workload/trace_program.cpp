#include "workload/trace_program.hpp"

#include <algorithm>

#include "workload/trace_syntax.hpp"

namespace rvma::trace_detail {

std::uint32_t Program::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? kNoName : *found;
}

std::uint32_t Program::define(std::string_view name, const NameInfo& info) {
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.emplace_back(name);
  infos_.push_back(info);
  index_.insert(number);
  return number;
}

std::uint32_t Program::common_loops(std::uint32_t name, const std::vector<std::uint32_t>& open) const {
  std::uint32_t loop = infos_[name].loop;
  while (loop != kNoLoop) {
    const std::uint32_t depth = loops[loop].depth;
    if (depth <= open.size() && open[depth - 1] == loop) return depth;
    loop = loops[loop].parent;
  }
  return 0;
}

std::uint32_t Program::loop_at(std::uint32_t name, std::uint32_t depth) const {
  std::uint32_t loop = infos_[name].loop;
  while (loops[loop].depth > depth) loop = loops[loop].parent;
  return loop;
}

std::uint32_t Program::loop_beginning_at(std::uint64_t offset) const {
  const auto found = std::lower_bound(loops.begin(), loops.end(), offset,
                                      [](const Loop& loop, std::uint64_t at) { return loop.begin < at; });
  RVMA_ASSERT(found != loops.end() && found->begin == offset, "the trace changed while it was being played");
  return static_cast<std::uint32_t>(found - loops.begin());
}

void Program::record_use(const Reference& reference, UseSite site) {
  NameInfo& info = infos_[reference.name];
  if (reference.suffix.empty()) {
    info.last_inner_use = site;
    return;
  }
  info.suffix_levels |= 1U << reference.common;
  suffix_uses_[SuffixUse{reference.name, reference.common, reference.suffix}] = site;
}

bool Program::used_by_suffix(std::uint32_t name, const std::vector<std::uint64_t>& passes, std::uint32_t below) const {
  const std::uint32_t levels = infos_[name].suffix_levels;
  if (levels == 0) return false;
  for (std::uint32_t common = 0; common < below; ++common) {
    if ((levels >> common & 1U) == 0) continue;
    const SuffixUse use{name, common, {passes.begin() + common, passes.end()}};
    if (suffix_uses_.contains(use)) return true;
  }
  return false;
}

UseSite Program::last_suffix_use(const SuffixUse& use) const {
  const auto found = suffix_uses_.find(use);
  return found == suffix_uses_.end() ? 0 : found->second;
}

bool split_name(std::string_view text, std::string_view& base, std::vector<std::uint64_t>& suffix) {
  suffix.clear();
  std::size_t at = text.find('.');
  base = text.substr(0, at);
  if (!is_name(base)) return false;
  while (at < text.size()) {
    const std::size_t begin = at + 1;
    at = std::min(text.find('.', begin), text.size());
    const std::string_view digits = text.substr(begin, at - begin);
    if (digits.empty() || (digits.size() > 1 && digits.front() == '0')) return false;
    std::uint64_t value = 0;
    for (const char c : digits) {
      if (c < '0' || c > '9') return false;
      value = saturating_multiply_add(value, 10, static_cast<std::uint64_t>(c - '0'));
    }
    suffix.push_back(value);
  }
  return true;
}

std::uint64_t saturating_multiply_add(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result) || __builtin_add_overflow(result, c, &result))
    return std::numeric_limits<std::uint64_t>::max();
  return result;
}

}  // namespace rvma::trace_detail
