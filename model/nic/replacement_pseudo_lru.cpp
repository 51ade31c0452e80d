#include "nic/replacement.hpp"

namespace rvma {
namespace {

/// A binary tree over the places, one bit a node that points away from the half used last: what hardware builds in
/// place of exact order. The tree doubles when a place beyond it is filled.
class PseudoLru : public ReplacementPolicy {
 public:
  void filled(Place place) override {
    while (place >= leaves_) grow();
    filled_[place] = true;
    used(place);
  }
  void used(Place place) override {
    for (std::size_t node = leaves_ + place; node > 1; node /= 2) right_is_older_[node / 2] = node % 2 == 0;
  }
  void freed(Place place) override { filled_[place] = false; }
  Place victim(const std::function<bool(Place)>& may_go) override {
    if (leaves_ == 0) return kNone;
    std::size_t node = 1;
    while (node < leaves_) node = 2 * node + (right_is_older_[node] ? 1 : 0);
    // The tree names one place; if that may not go, the next one that may.
    const std::size_t named = node - leaves_;
    for (std::size_t i = 0; i < leaves_; ++i) {
      const auto place = static_cast<Place>((named + i) % leaves_);
      if (filled_[place] && may_go(place)) return place;
    }
    return kNone;
  }

 private:
  /// The tree so far becomes the left half of one of twice the size, as just used.
  void grow() {
    const std::size_t larger = leaves_ == 0 ? 1 : 2 * leaves_;
    std::vector<bool> bits(larger);
    for (std::size_t node = 1; node < leaves_; ++node) {
      std::size_t level = 1;
      while (2 * level <= node) level *= 2;
      bits[node + level] = right_is_older_[node];
    }
    if (larger > 1) bits[1] = true;
    right_is_older_ = std::move(bits);
    filled_.resize(larger);
    leaves_ = larger;
  }

  std::size_t leaves_ = 0;            ///< a power of two, or none
  std::vector<bool> right_is_older_;  ///< by node, the root is 1
  std::vector<bool> filled_;          ///< by place
};

}  // namespace

std::unique_ptr<ReplacementPolicy> make_pseudo_lru(const Random& random);
std::unique_ptr<ReplacementPolicy> make_pseudo_lru(const Random& /*random*/) { return std::make_unique<PseudoLru>(); }

}  // namespace rvma
