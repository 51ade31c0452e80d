#include "nic/tell_bound.hpp"

namespace rvma {

void tell_bound(const ObserverList& observers, NodeId node, const MessageRef& message, std::uint64_t message_length,
                const BindAnswer& bound, Time at) {
  const bool is_refused = bound.outcome != Outcome::pending;
  // A managed message that does not fit retires the buffer before it binds to the next one, or is refused.
  const bool is_misfit = bound.retired && (is_refused || bound.retired_buffer != bound.place.buffer);
  observers.tell([&](NicObserver& observer) {
    if (is_misfit) observer.epoch_retired(node, bound.window, bound.retired_buffer, bound.retired_epoch, false, at);
    if (is_refused) {
      observer.message_refused(node, message, bound.outcome, at);
    } else {
      observer.message_bound(node, message, bound.window, bound.place.buffer, bound.epoch, bound.message_offset,
                             message_length, at);
    }
    if (bound.retired && !is_misfit) {
      observer.epoch_retired(node, bound.window, bound.retired_buffer, bound.retired_epoch, false, at);
    }
    if (bound.retired_next) {
      observer.epoch_retired(node, bound.window, bound.place.buffer, bound.epoch, false, at);
    }
  });
}

}  // namespace rvma
