#include "report/links_csv.hpp"

#include <ostream>

#include "report/number_format.hpp"

namespace rvma {

void write_links_csv(std::ostream& out, const Fabric& fabric, Time elapsed) {
  out << "link,from,to,packets,wire_bytes,payload_bytes,utilisation,credit_stall_ns,lost_down,lost_full\n";
  for (std::size_t i = 0; i < fabric.links().size(); ++i) {
    const FabricLink link = fabric.describe(i);
    const LinkStats& stats = fabric.links()[i].stats();
    out << link.name << ',' << link.from << ',' << link.to << ',' << stats.packets.value() << ','
        << stats.wire_bytes.value() << ',' << stats.payload_bytes.value() << ','
        << ratio_text(static_cast<std::uint64_t>(stats.wire.busy().ps()), static_cast<std::uint64_t>(elapsed.ps()), 6)
        << ',' << to_ns_string(stats.credit_stall_ns.value()) << ',' << stats.lost_down.value() << ','
        << stats.lost_full.value() << '\n';
  }
}

}  // namespace rvma
