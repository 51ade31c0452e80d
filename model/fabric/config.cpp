#include "fabric/config.hpp"

#include <limits>

namespace rvma {

ValueResult<Dimensions> ValueText<Dimensions>::parse(std::string_view text) {
  Dimensions dimensions;
  while (true) {
    const std::size_t end = text.find('x');
    if (text.substr(0, end).empty()) {
      return ValueError{"an extent is missing", "expected extents of 1 to 65535 with x between them, such as 4x4x4"};
    }
    const auto extent = parse_integer(text.substr(0, end), std::numeric_limits<std::uint16_t>::max(), "extent");
    if (!extent || *extent == 0) {
      return ValueError{extent ? "an extent of 0" : extent.error().what,
                        "expected extents of 1 to 65535 with x between them, such as 4x4x4"};
    }
    dimensions.extents.push_back(static_cast<std::uint32_t>(*extent));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  if (dimensions.extents.size() > Dimensions::kMost) {
    return ValueError{std::to_string(dimensions.extents.size()) + " dimensions",
                      "expected at most " + std::to_string(Dimensions::kMost)};
  }
  return dimensions;
}

std::string ValueText<Dimensions>::print(const Dimensions& value) {
  std::string text;
  for (const std::uint32_t extent : value.extents) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

}  // namespace rvma
