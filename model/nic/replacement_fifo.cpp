#include "nic/recency_list.hpp"
#include "nic/replacement.hpp"

namespace rvma {
namespace {

/// The place that was filled first goes first, however much it is used: a counter is all that it costs.
class Fifo : public ReplacementPolicy {
 public:
  void filled(Place place) override { list_.add(place); }
  void used(Place /*place*/) override {}
  void freed(Place place) override { list_.remove(place); }
  Place victim(const std::function<bool(Place)>& may_go) override { return list_.oldest(may_go); }

 private:
  RecencyList list_;
};

}  // namespace

std::unique_ptr<ReplacementPolicy> make_fifo(const Random& random);
std::unique_ptr<ReplacementPolicy> make_fifo(const Random& /*random*/) { return std::make_unique<Fifo>(); }

}  // namespace rvma
