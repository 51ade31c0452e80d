#include "rdma/work_queue.hpp"

#include <array>

namespace rvma {

std::uint64_t WorkQueue::consumed() {
  std::array<std::uint8_t, 8> bytes{};
  memory_.read(consumed_word_, bytes.data(), bytes.size());
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes.size(); ++i) value |= std::uint64_t{bytes.at(i)} << (8 * i);
  return value;
}

void WorkQueue::post(const Descriptor& descriptor, Time delay) {
  if (posted_ - consumed_ >= depth_) consumed_ = consumed();
  if (waiting_.empty() && posted_ - consumed_ < depth_) {
    ++posted_;
    write_(InlineCommand(descriptor, memory_, page_bytes_, inline_payload_bytes_), delay);
    return;
  }
  waiting_.push(descriptor);
  go_on();
}

void WorkQueue::go_on() {
  consumed_ = consumed();
  while (!waiting_.empty() && posted_ - consumed_ < depth_) {
    ++posted_;
    write_(InlineCommand(waiting_.pop(), memory_, page_bytes_, inline_payload_bytes_), Time::zero());
  }
  if (waiting_.empty() || is_watching_) return;
  is_watching_ = true;
  memory_.watch(consumed_word_, 8, [this] {
    is_watching_ = false;
    go_on();
  });
}

}  // namespace rvma
