#include "nic/recency_list.hpp"
#include "nic/replacement.hpp"

namespace rvma {
namespace {

/// Exact least-recently-used order: what hardware affords for small caches only, and the yardstick for the others.
class Lru : public ReplacementPolicy {
 public:
  void filled(Place place) override { list_.add(place); }
  void used(Place place) override { list_.renew(place); }
  void freed(Place place) override { list_.remove(place); }
  Place victim(const std::function<bool(Place)>& may_go) override { return list_.oldest(may_go); }

 private:
  RecencyList list_;
};

}  // namespace

std::unique_ptr<ReplacementPolicy> make_lru(const Random& random);
std::unique_ptr<ReplacementPolicy> make_lru(const Random& /*random*/) { return std::make_unique<Lru>(); }

}  // namespace rvma
