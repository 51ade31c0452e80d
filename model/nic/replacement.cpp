#include "nic/replacement.hpp"

#include <array>

/// Every policy by its name: make_NAME stands in replacement_NAME.cpp.
#define RVMA_REPLACEMENT_POLICIES(policy) policy(lru) policy(pseudo_lru) policy(fifo) policy(random)

namespace rvma {

#define RVMA_DECLARE(name) std::unique_ptr<ReplacementPolicy> make_##name(const Random& random);
RVMA_REPLACEMENT_POLICIES(RVMA_DECLARE)
#undef RVMA_DECLARE

namespace {

struct Registration {
  const char* name;
  std::unique_ptr<ReplacementPolicy> (*make)(const Random& random);
};
#define RVMA_REGISTER(name) Registration{#name, &make_##name},
const std::array kRegistered{RVMA_REPLACEMENT_POLICIES(RVMA_REGISTER)};
#undef RVMA_REGISTER

}  // namespace

const std::vector<std::string>& replacement_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    all.reserve(kRegistered.size());
    for (const Registration& registration : kRegistered) all.emplace_back(registration.name);
    return all;
  }();
  return names;
}

std::unique_ptr<ReplacementPolicy> make_replacement(ReplacementName name, const Random& random) {
  return kRegistered.at(name.index()).make(random);
}

std::string ValueText<ReplacementName>::type_name() {
  std::string text = "one of";
  for (const std::string& name : replacement_names()) text += " " + name;
  return text;
}

ValueResult<ReplacementName> ValueText<ReplacementName>::parse(std::string_view text) {
  const std::vector<std::string>& names = replacement_names();
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    if (names[i] != text) continue;
    ReplacementName found;
    found.index_ = i;
    return found;
  }
  return detail::unknown_enumerator(text, names);
}

std::string ValueText<ReplacementName>::print(ReplacementName value) { return replacement_names().at(value.index()); }

}  // namespace rvma
