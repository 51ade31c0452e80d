/// \file
/// links.csv: what every link of the fabric carried.
#pragma once

#include <iosfwd>

#include "base/units.hpp"
#include "fabric/fabric.hpp"

namespace rvma {

/// One row for each direction of every cable; `elapsed` is what utilisation is related to.
void write_links_csv(std::ostream& out, const Fabric& fabric, Time elapsed);

}  // namespace rvma
