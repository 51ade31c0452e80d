#include "nic/replacement.hpp"

namespace rvma {
namespace {

/// Any filled place, by lot: no state a place at all.
class RandomReplacement : public ReplacementPolicy {
 public:
  explicit RandomReplacement(const Random& random) : random_(random) {}
  void filled(Place place) override {
    if (place >= position_.size()) position_.resize(place + std::size_t{1});
    position_[place] = static_cast<Place>(filled_.size());
    filled_.push_back(place);
  }
  void used(Place /*place*/) override {}
  void freed(Place place) override {
    const Place last = filled_.back();
    filled_[position_[place]] = last;
    position_[last] = position_[place];
    filled_.pop_back();
  }
  Place victim(const std::function<bool(Place)>& may_go) override {
    if (filled_.empty()) return kNone;
    // From a random place on, so that places that may not go only shift the lot.
    const auto from = static_cast<std::size_t>(random_.below(filled_.size()));
    for (std::size_t i = 0; i < filled_.size(); ++i) {
      const Place place = filled_[(from + i) % filled_.size()];
      if (may_go(place)) return place;
    }
    return kNone;
  }

 private:
  Random random_;
  std::vector<Place> filled_;
  std::vector<Place> position_;  ///< of each filled place within filled_
};

}  // namespace

std::unique_ptr<ReplacementPolicy> make_random(const Random& random);
std::unique_ptr<ReplacementPolicy> make_random(const Random& random) {
  return std::make_unique<RandomReplacement>(random);
}

}  // namespace rvma
