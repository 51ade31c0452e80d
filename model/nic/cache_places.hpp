/// \file
/// The places of a cache on the NIC: which are filled, and which one makes room. Plain C++, no time in it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "nic/replacement.hpp"

namespace rvma {

/// What stands in a place is the owner's business. Memory grows with the places that were ever filled.
class CachePlaces {
 public:
  using Place = ReplacementPolicy::Place;

  CachePlaces(std::uint32_t places, std::unique_ptr<ReplacementPolicy> policy)
      : places_(places), policy_(std::move(policy)) {}

  std::uint32_t capacity() const { return places_; }
  std::uint32_t filled() const { return filled_; }
  bool has_free() const { return filled_ < places_; }
  struct Taken {
    Place place = 0;
    bool replaces = false;  ///< it was filled: what stood there is gone
  };
  /// Fills a place: a free one, else the one that the policy names.
  Taken fill() {
    Taken taken;
    if (!free_.empty()) {
      taken.place = free_.back();
      free_.pop_back();
    } else if (made_ < places_) {
      taken.place = made_++;
    } else {
      taken.place = policy_->victim([](Place /*place*/) { return true; });
      taken.replaces = true;
      policy_->freed(taken.place);
      --filled_;
    }
    ++filled_;
    policy_->filled(taken.place);
    return taken;
  }
  void use(Place place) { policy_->used(place); }
  void free(Place place) {
    policy_->freed(place);
    free_.push_back(place);
    --filled_;
  }

 private:
  std::uint32_t places_;
  std::unique_ptr<ReplacementPolicy> policy_;
  std::vector<Place> free_;
  Place made_ = 0;  ///< places below were filled once
  std::uint32_t filled_ = 0;
};

}  // namespace rvma
