/// \file
/// Places of a cache in an order of time: the common part of the policies that keep one.
#pragma once

#include <functional>
#include <vector>

#include "nic/replacement.hpp"

namespace rvma {

/// A doubly linked list over place numbers. O(1) but for oldest(), which passes places that may not go.
class RecencyList {
 public:
  using Place = ReplacementPolicy::Place;

  /// The place, which is not listed, becomes the newest.
  void add(Place place) {
    if (place >= links_.size()) links_.resize(place + std::size_t{1});
    links_[place] = {kNone, newest_};
    (newest_ == kNone ? oldest_ : links_[newest_].newer) = place;
    newest_ = place;
  }
  void remove(Place place) {
    const Link link = links_[place];
    (link.newer == kNone ? newest_ : links_[link.newer].older) = link.older;
    (link.older == kNone ? oldest_ : links_[link.older].newer) = link.newer;
  }
  /// The listed place becomes the newest.
  void renew(Place place) {
    if (place == newest_) return;
    remove(place);
    add(place);
  }
  Place oldest(const std::function<bool(Place)>& may_go) const {
    Place place = oldest_;
    while (place != kNone && !may_go(place)) place = links_[place].newer;
    return place;
  }

 private:
  static constexpr Place kNone = ReplacementPolicy::kNone;
  struct Link {
    Place newer = kNone;
    Place older = kNone;
  };
  std::vector<Link> links_;
  Place newest_ = kNone;
  Place oldest_ = kNone;
};

}  // namespace rvma
