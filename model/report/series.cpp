#include "report/series.hpp"

#include <algorithm>
#include <ostream>
#include <utility>

#include "report/limits.hpp"
#include "report/number_format.hpp"

namespace rvma {

std::size_t Series::column_of(const StatsRegistry::Level& level) {
  std::string kind = without_numbers(level.unit_path) + "." + level.name;
  // A restarted NIC is a unit of its own, and of the same kind.
  constexpr std::string_view kRestarted = ".nic_boot.";
  if (const std::size_t at = kind.find(kRestarted); at != std::string::npos) {
    kind.replace(at, kRestarted.size(), ".nic.");
  }
  const auto found = std::find(columns_.begin(), columns_.end(), kind);
  if (found != columns_.end()) return static_cast<std::size_t>(found - columns_.begin());
  columns_.push_back(std::move(kind));
  return columns_.size() - 1;
}

Series::Row Series::sample(Time at) {
  const std::vector<StatsRegistry::Level>& levels = registry_.levels();
  while (column_by_level_.size() < levels.size()) {
    column_by_level_.push_back(column_of(levels[column_by_level_.size()]));
  }
  const RunTotals& totals = recorder_.totals();
  Row row;
  row.at = at;
  for (const std::uint64_t refused : totals.refused) row.refusals += refused;
  row.resent = totals.packets_resent;
  row.levels.resize(columns_.size());
  for (std::size_t i = 0; i < levels.size(); ++i) {
    std::uint64_t& most = row.levels[column_by_level_[i]];
    most = std::max(most, levels[i].take());
  }
  return row;
}

void Series::add(Row row) {
  rows_.push_back(std::move(row));
  if (rows_.size() == kRows) widen();
}

void Series::widen() {
  // Counts go on from the end of a pair; of levels a pair shows the higher one. A row without its second is asked for
  // again, later.
  const std::size_t pairs = rows_.size() / 2;
  for (std::size_t i = 0; i < pairs; ++i) {
    Row& second = rows_[2 * i + 1];
    const std::vector<std::uint64_t>& first = rows_[2 * i].levels;
    for (std::size_t k = 0; k < first.size(); ++k) second.levels[k] = std::max(second.levels[k], first[k]);
    rows_[i] = std::move(second);
  }
  rows_.resize(pairs);
  for (std::size_t i = 0; i < kRows; ++i) {
    Delivery both;
    for (std::size_t k = 2 * i; k < std::min(2 * i + 2, kRows); ++k) {
      both.bytes += deliveries_[k].bytes;
      both.packets += deliveries_[k].packets;
    }
    deliveries_[i] = both;
  }
  interval_ = interval_ * 2;
}

void Series::packet_placed(NodeId /*node*/, const PlacedPacket& packet, std::uint64_t /*buffer_offset*/, Time at) {
  // A row's interval begins behind the end of the one before.
  const auto row_of = [this](Time time) {
    return static_cast<std::size_t>(std::max<std::int64_t>(time.ps() - 1, 0) / interval_.ps());
  };
  while (row_of(at) >= kRows) widen();
  Delivery& delivery = deliveries_[row_of(at)];
  delivery.bytes += packet.payload_length;
  ++delivery.packets;
}

void Series::advance(Time event) {
  if (event <= next()) return;
  add(sample(next()));
  if (event <= next()) return;
  // Nothing changes any more until the event.
  const Row still = sample(next());
  while (next() < event) {
    Row row = still;
    row.at = next();
    add(std::move(row));
  }
}

void Series::finish(Time now) {
  advance(now);
  if (rows_.empty() || rows_.back().at < now) rows_.push_back(sample(now));
}

void Series::write(std::ostream& out) const {
  out << "time_ns,delivered_bytes,goodput_gbps,packets,refusals,retransmitted";
  for (const std::string& column : columns_) out << ',' << column;
  out << '\n';
  Row before;
  for (std::size_t at = 0; at < rows_.size(); ++at) {
    const Row& row = rows_[at];
    const std::uint64_t bytes = deliveries_[at].bytes;
    out << to_ns_string(row.at) << ',' << bytes << ',' << gbps_text(bytes, row.at - before.at) << ','
        << deliveries_[at].packets << ',' << row.refusals - before.refusals << ',' << row.resent - before.resent;
    for (std::size_t i = 0; i < columns_.size(); ++i) out << ',' << (i < row.levels.size() ? row.levels[i] : 0);
    out << '\n';
    before = row;
  }
}

}  // namespace rvma
