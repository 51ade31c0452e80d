#include "driver/driver.hpp"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/slot_table.hpp"
#include "driver/command_queue.hpp"
#include "driver/pinned_memory.hpp"
#include "host/ring_queue.hpp"

namespace rvma {
namespace {

constexpr std::uint64_t kWordBytes = 16;
constexpr std::uint64_t kPageListEntryBytes = 8;
constexpr std::uint64_t kHistoryEntryBytes = 24;  ///< head, length, epoch: what get_buf_ptrs is answered with
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// The word's second half.
PhysicalAddress second(PhysicalAddress word) { return PhysicalAddress{word.value() + 8}; }

}  // namespace

struct Driver::Impl {
  /// What the driver keeps about a completion until its word is written or its owner gives it up: every posted buffer
  /// (as long as a rewind may bring it back), puts with a page list, and what failed before the NIC could write.
  struct Operation {
    PhysicalAddress completion;
    bool is_post = false;  ///< stands in a bucket, with what follows
    bool is_one_time = false;
    bool is_reposted = false;  ///< its memory was posted again
    Mailbox mailbox;
    VirtualAddress head;
    std::uint64_t ordinal = 0;  ///< among the buffers that the window has taken, once answered: also its epoch
    PhysicalAddress answer;     ///< word of the post's own answer while that is awaited; else 0
    bool failed = false;        ///< the word will never be written: waits end with `status`
    Status status = Status::ok;
    PhysicalAddress page_list;
    std::uint64_t page_list_bytes = 0;
    // The window's other posted buffers.
    std::uint32_t previous = kNone;
    std::uint32_t next = kNone;
  };
  /// Buffers posted to one mailbox's window, in order.
  struct Bucket {
    std::uint32_t oldest = kNone;
    std::uint32_t newest = kNone;
    std::uint32_t first_open = kNone;  ///< the first that was not seen completed
    std::uint64_t accepted = 0;        ///< buffers that the NIC has taken
    std::uint64_t kept_from = 0;       ///< epochs before this one cannot come again: their buffers were given up
  };
  /// A call whose answer the NIC has not written, or the driver not seen, yet.
  struct Call {
    Descriptor descriptor;
    std::uint32_t operation = kNone;  ///< posts
  };
  struct Answer {
    Status status = Status::ok;
    std::uint64_t value = 0;
  };

  Impl(RankId rank_of_program, Core& own_core, AddressSpace& own_space, FrameAllocator& frames, const NicConfig& nic,
       DriverObserver* call_observer)
      : rank(rank_of_program),
        core(own_core),
        space(own_space),
        observer(call_observer),
        history(nic.history),
        pinned(frames),
        queue(core, frames, new_word(), nic.command, space.page_bytes()) {}

  // ---- words
  void zero(PhysicalAddress word) { core.memory().zero(word, kWordBytes); }
  PhysicalAddress new_word() {
    const PhysicalAddress word = pinned.allocate(kWordBytes);
    zero(word);
    return word;
  }
  bool is_written(PhysicalAddress word) { return core.load64(word) != 0; }
  static bool is_word(CompletionPointer completion) {
    return completion.address.value() != 0 && completion.address.value() % kWordBytes == 0;
  }

  // ---- operations
  std::uint32_t find(PhysicalAddress completion) const {
    if (by_completion.empty()) return kNone;
    const auto found = by_completion.find(completion.value());
    return found == by_completion.end() ? kNone : found->second;
  }
  Operation& remember(PhysicalAddress completion) {
    const std::uint32_t number = operations.take();
    operations[number] = Operation{};
    by_completion[completion.value()] = number;
    operations[number].completion = completion;
    return operations[number];
  }
  void forget(std::uint32_t number) {
    if (number == kNone) return;
    Operation& operation = operations[number];
    RVMA_ASSERT(operation.answer.value() == 0, "a post was forgotten before it was answered");
    if (operation.page_list_bytes > 0) pinned.free(operation.page_list, operation.page_list_bytes);
    if (operation.is_post) {
      keep_from(operation, operation.ordinal + 1);
      unlink(number);
    }
    by_completion.erase(operation.completion.value());
    operations.give_back(number);
  }

  // ---- posted buffers: those that have not completed, and those that a rewind may bring back
  void link(std::uint32_t number) {
    Operation& operation = operations[number];
    Bucket& bucket = buckets[operation.mailbox.value()];
    operation.previous = bucket.newest;
    (bucket.newest == kNone ? bucket.oldest : operations[bucket.newest].next) = number;
    bucket.newest = number;
    if (bucket.first_open == kNone) bucket.first_open = number;
    by_head.insert_or_assign(operation.head.value(), number);
  }
  void unlink(std::uint32_t number) {
    Operation& operation = operations[number];
    const auto found = buckets.find(operation.mailbox.value());
    Bucket& bucket = found->second;
    (operation.next == kNone ? bucket.newest : operations[operation.next].previous) = operation.previous;
    (operation.previous == kNone ? bucket.oldest : operations[operation.previous].next) = operation.next;
    if (bucket.first_open == number) bucket.first_open = operation.next;
    operation.is_post = false;
    const auto head = by_head.find(operation.head.value());
    if (head != by_head.end() && head->second == number) by_head.erase(head);
    if (bucket.oldest == kNone && !open_windows.contains(operation.mailbox.value())) buckets.erase(found);
  }
  /// No epoch of the operation's window before `ordinal` may come again.
  void keep_from(const Operation& operation, std::uint64_t ordinal) {
    const auto found = buckets.find(operation.mailbox.value());
    if (found != buckets.end()) found->second.kept_from = std::max(found->second.kept_from, ordinal);
  }
  /// The memory is posted again: what it held of an earlier epoch is given up.
  void posted_again(VirtualAddress head) {
    const auto found = by_head.find(head.value());
    if (found == by_head.end()) return;
    Operation& earlier = operations[found->second];
    earlier.is_reposted = true;
    if (earlier.answer.value() == 0) keep_from(earlier, earlier.ordinal + 1);
  }
  /// Forgets completed buffers that the NIC does not remember either.
  void trim(Mailbox mailbox) {
    const auto found = buckets.find(mailbox.value());
    if (found == buckets.end()) return;
    Bucket& bucket = found->second;
    const auto is_answered = [this](std::uint32_t number) { return operations[number].answer.value() == 0; };
    while (bucket.first_open != kNone && is_answered(bucket.first_open) &&
           is_written(operations[bucket.first_open].completion)) {
      bucket.first_open = operations[bucket.first_open].next;
    }
    const bool has_open = bucket.first_open != kNone && is_answered(bucket.first_open);
    const std::uint64_t completed = has_open ? operations[bucket.first_open].ordinal : bucket.accepted;
    while (bucket.oldest != bucket.first_open && operations[bucket.oldest].ordinal + history < completed) {
      if (operations[bucket.oldest].next == kNone) return forget(bucket.oldest);  // the bucket may go with it
      forget(bucket.oldest);
    }
  }
  /// The NIC will not write the completion: waits end with `status`.
  Status fail(CompletionPointer completion, Status status) {
    if (!is_word(completion)) return status;
    const std::uint32_t known = find(completion.address);
    Operation& operation = known == kNone ? remember(completion.address) : operations[known];
    operation.failed = true;
    operation.status = status;
    return status;
  }
  /// A new use of a completion begins: whatever it stood for is over. False: it is in use.
  bool take(CompletionPointer completion) {
    const std::uint32_t known = find(completion.address);
    if (known != kNone) {
      const Operation& operation = operations[known];
      if (operation.answer.value() != 0 || (!operation.failed && !is_written(completion.address))) return false;
      forget(known);
    }
    zero(completion.address);
    return true;
  }

  // ---- descriptors
  /// Puts the buffer's pages into the descriptor: the page itself, or a list in host memory.
  void set_pages(Descriptor& descriptor) {
    if (descriptor.length == 0) {
      descriptor.single_page = true;
      return;
    }
    const std::uint64_t page = space.page_bytes();
    const std::uint64_t in_page = descriptor.local.value() % page;
    if (descriptor.length <= page - in_page) {
      descriptor.single_page = true;
      descriptor.page_list = PhysicalAddress{space.translate(descriptor.local).value() - in_page};
      return;
    }
    space.pages(descriptor.local, descriptor.length, pages);
    list_bytes.resize(kPageListEntryBytes * pages.size());
    for (std::size_t i = 0; i < pages.size(); ++i) {
      for (unsigned byte = 0; byte < kPageListEntryBytes; ++byte) {
        list_bytes[kPageListEntryBytes * i + byte] = static_cast<std::uint8_t>(pages[i].value() >> (8 * byte));
      }
    }
    descriptor.page_list = pinned.allocate(list_bytes.size());
    core.memory().write(descriptor.page_list, list_bytes.data(), list_bytes.size());
  }
  /// Whether set_pages() made a list, and how long.
  std::uint64_t page_list_bytes(const Descriptor& descriptor) const {
    return descriptor.single_page ? 0 : list_bytes.size();
  }
  static bool wraps(VirtualAddress address, std::uint64_t bytes) { return address.value() + bytes < address.value(); }

  /// Begins every call that goes to the NIC; the time of the call's issue is when it begins.
  void issue(const Descriptor& descriptor) {
    if (observer != nullptr) observer->call_issued(rank, descriptor, core.now());
    core.spend_issue();
    queue.post(descriptor);
  }

  // ---- answers
  /// Takes every answer that has become visible; the NIC answers one process's calls in order.
  void notice_answers() {
    while (!calls.empty() && is_written(calls.front().descriptor.response)) {
      const Call call = calls.pop_front();
      const PhysicalAddress word = call.descriptor.response;
      last_answer = {static_cast<Status>(core.load64(word)), core.load64(second(word))};
      pinned.free(word, kWordBytes);
      if (call.operation != kNone) post_answered(call.operation, last_answer.status);
      if (observer != nullptr) {
        observer->call_answered(rank, call.descriptor, last_answer.status, last_answer.value, core.now());
      }
    }
  }
  void post_answered(std::uint32_t number, Status status) {
    Operation& operation = operations[number];
    operation.answer = PhysicalAddress{};
    if (status == Status::ok) {
      if (!operation.is_post) return;
      operation.ordinal = buckets.at(operation.mailbox.value()).accepted++;
      if (operation.is_reposted) keep_from(operation, operation.ordinal + 1);
      return;
    }
    if (operation.is_post) unlink(number);
    operation.failed = true;
    operation.status = status;
  }
  void wait_for_answers() {
    notice_answers();
    while (!calls.empty()) {
      core.wait_nonzero(calls.back().descriptor.response, WaitHow::mwait, [] {});
      notice_answers();
    }
  }
  /// A call that waits for its answer.
  Answer call(Descriptor descriptor) {
    notice_answers();
    descriptor.response = new_word();
    issue(descriptor);
    calls.push_back({descriptor, kNone});
    wait_for_answers();
    return last_answer;
  }

  // ---- windows
  Status status_of(Window window) const {
    if (window.opening == Window::kByMailbox) return Status::ok;
    if (window.opening == Window::kNeverOpened) return Status::no_window;
    const auto found = open_windows.find(window.mailbox.value());
    return found != open_windows.end() && found->second == window.opening ? Status::ok : Status::closed;
  }
  /// A call on a window that waits for its answer. On a dead handle the driver answers, for the price of a call.
  Answer call_on(Window window, Descriptor descriptor) {
    if (const Status status = status_of(window); status != Status::ok) {
      notice_answers();
      core.spend_issue();
      return {status, 0};
    }
    return call(descriptor);
  }

  // ---- calls
  Status post(Descriptor descriptor, Status window_status) {
    notice_answers();
    // 1. What could not be laid out for the NIC.
    const CompletionPointer completion{descriptor.completion};
    if (!is_word(completion)) return Status::bad_argument;
    if (!take(completion)) return Status::bad_argument;
    if (window_status != Status::ok) {
      core.spend_issue();
      return fail(completion, window_status);
    }
    if (descriptor.length == 0 || wraps(descriptor.local, descriptor.length)) {
      return fail(completion, Status::bad_argument);
    }
    // 2. The buffer is the window's from now on.
    set_pages(descriptor);
    descriptor.response = new_word();
    posted_again(descriptor.local);
    Operation& operation = remember(completion.address);
    operation.mailbox = descriptor.mailbox;
    operation.head = descriptor.local;
    operation.is_post = true;
    operation.is_one_time = descriptor.opcode == Opcode::post_one_time_buffer;
    operation.answer = descriptor.response;
    operation.page_list = descriptor.page_list;
    operation.page_list_bytes = page_list_bytes(descriptor);
    const std::uint32_t number = find(completion.address);
    link(number);
    // 3. To the NIC; its answer is looked at later.
    issue(descriptor);
    calls.push_back({descriptor, number});
    return Status::ok;
  }

  /// Or get: both name local memory and a word.
  Status put(Descriptor descriptor) {
    notice_answers();
    const CompletionPointer completion{descriptor.completion};
    if (!is_word(completion)) return Status::bad_argument;
    if (!take(completion)) return Status::bad_argument;
    if (wraps(descriptor.local, descriptor.length)) return fail(completion, Status::bad_argument);
    set_pages(descriptor);
    if (!descriptor.single_page) {
      Operation& operation = remember(completion.address);
      operation.page_list = descriptor.page_list;
      operation.page_list_bytes = page_list_bytes(descriptor);
    }
    issue(descriptor);
    return Status::ok;
  }

  /// The window's buffers that have not completed have been given back.
  void return_buffers(Mailbox mailbox) {
    open_windows.erase(mailbox.value());
    for (auto found = buckets.find(mailbox.value()); found != buckets.end() && found->second.oldest != kNone;
         found = buckets.find(mailbox.value())) {
      const std::uint32_t number = found->second.oldest;
      Operation& operation = operations[number];
      if (is_written(operation.completion)) {
        forget(number);
        continue;
      }
      unlink(number);
      operation.failed = true;
      operation.status = Status::closed;
    }
    buckets.erase(mailbox.value());
  }
  /// A window was opened: what the mailbox's earlier one has completed, or is about to, is none of its.
  void opened(Mailbox mailbox) {
    for (auto found = buckets.find(mailbox.value()); found != buckets.end() && found->second.oldest != kNone;
         found = buckets.find(mailbox.value())) {
      unlink(found->second.oldest);
    }
    buckets.erase(mailbox.value());
    open_windows[mailbox.value()] = ++openings;
  }

  /// Words that were written are zero again.
  void rewound(Mailbox mailbox) {
    const auto found = buckets.find(mailbox.value());
    if (found != buckets.end()) found->second.first_open = found->second.oldest;
  }

  void arm_interrupt(PhysicalAddress word) {
    Descriptor descriptor;
    descriptor.opcode = Opcode::arm_interrupt;
    descriptor.completion = word;
    issue(descriptor);
  }

  WaitAnswer wait(CompletionPointer completion, WaitHow how) {
    if (!is_word(completion)) return {Status::bad_argument, 0, 0, core.now()};
    waited = completion;
    is_waiting = true;
    const WaitAnswer answer = wait_for(completion.address, how);
    is_waiting = false;
    return answer;
  }
  WaitAnswer wait_for(PhysicalAddress word, WaitHow how) {
    notice_answers();
    // 1. A refused post never writes its completion, so its answer comes first. Nothing interrupts for an answer.
    while (!is_written(word)) {
      const std::uint32_t number = find(word);
      if (number == kNone || operations[number].answer.value() == 0) break;
      core.wait_nonzero(operations[number].answer, how == WaitHow::poll ? how : WaitHow::mwait, [] {});
      notice_answers();
    }
    // 2. Returned or refused.
    const std::uint32_t number = find(word);
    if (number != kNone && operations[number].failed) return {operations[number].status, 0, 0, core.now()};
    // 3. The word itself.
    const Time seen = core.wait_nonzero(word, how, [this, word] { arm_interrupt(word); });
    const WaitAnswer answer{Status::ok, core.load64(word), core.load64(second(word)), seen};
    completed(word);
    return answer;
  }
  /// The word is written: its buffer has left its window. Its page list is free once no rewind can bring it back.
  void completed(PhysicalAddress word) {
    const std::uint32_t number = find(word);
    if (number == kNone) return;
    // A completion is visible after the answer of its post, which may not have been looked at.
    if (operations[number].answer.value() != 0) notice_answers();
    const Operation& operation = operations[number];
    if (operation.is_post && !operation.is_one_time) {
      trim(operation.mailbox);
    } else if (operation.answer.value() == 0) {
      forget(number);
    }
  }

  RankId rank;
  Core& core;
  AddressSpace& space;
  DriverObserver* observer;
  std::uint64_t history;
  PinnedMemory pinned;
  CommandQueue queue;

  SlotTable<Operation> operations;
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> by_completion;
  boost::unordered_flat_map<std::uint64_t, Bucket> buckets;              ///< by mailbox
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> by_head;       ///< the last post of a buffer that is kept
  boost::unordered_flat_map<std::uint64_t, std::uint64_t> open_windows;  ///< mailbox: which opening has it
  std::uint64_t openings = 0;
  RingQueue<Call, 4> calls;  ///< unanswered, oldest first
  Answer last_answer;

  std::vector<PhysicalAddress> pages;    ///< scratch of set_pages()
  std::vector<std::uint8_t> list_bytes;  ///< likewise
  PhysicalAddress history_list;          ///< where the NIC writes the answer of get_buf_ptrs
  std::uint64_t history_list_bytes = 0;

  CompletionPointer waited;
  bool is_waiting = false;
};

Driver::Driver(RankId rank, Core& core, AddressSpace& space, FrameAllocator& frames, const NicConfig& nic,
               DriverObserver* observer)
    : impl_(std::make_unique<Impl>(rank, core, space, frames, nic, observer)) {}

Driver::~Driver() = default;

RankId Driver::rank() const { return impl_->rank; }
Core& Driver::core() { return impl_->core; }
AddressSpace& Driver::space() { return impl_->space; }
PhysicalAddress Driver::ring_base() const { return impl_->queue.ring_base(); }
PhysicalAddress Driver::consumed_word() const { return impl_->queue.consumed_word(); }

namespace {

Descriptor window_call(Opcode opcode, Mailbox mailbox) {
  Descriptor descriptor;
  descriptor.opcode = opcode;
  descriptor.mailbox = mailbox;
  return descriptor;
}

}  // namespace

Status Driver::init_window(Mailbox mailbox, std::uint64_t threshold, ThresholdType type, Placement placement,
                           std::uint32_t key, std::uint8_t flags, Window& window) {
  window = Window{mailbox, Window::kNeverOpened};
  constexpr std::uint8_t kKnownFlags = kWindowReadable | kWindowCatchAll | kWindowInterrupt;
  if ((flags & ~kKnownFlags) != 0) return Status::bad_argument;
  Descriptor descriptor = window_call(Opcode::init_window, mailbox);
  descriptor.threshold = threshold;
  descriptor.threshold_type = type;
  descriptor.placement = placement;
  descriptor.key = key;
  descriptor.window_flags = flags;
  const Status status = impl_->call(descriptor).status;
  if (status != Status::ok) return status;
  impl_->opened(mailbox);
  window.opening = impl_->openings;
  return status;
}

Status Driver::post_buffer(Window window, VirtualAddress buffer, std::uint64_t size, CompletionPointer completion) {
  Descriptor descriptor = window_call(Opcode::post_buffer, window.mailbox);
  descriptor.local = buffer;
  descriptor.length = size;
  descriptor.completion = completion.address;
  return impl_->post(descriptor, impl_->status_of(window));
}

Status Driver::post_one_time_buffer(Mailbox mailbox, std::uint64_t threshold, ThresholdType type, std::uint32_t key,
                                    VirtualAddress buffer, std::uint64_t size, CompletionPointer completion) {
  Descriptor descriptor = window_call(Opcode::post_one_time_buffer, mailbox);
  descriptor.threshold = threshold;
  descriptor.threshold_type = type;
  descriptor.key = key;
  descriptor.local = buffer;
  descriptor.length = size;
  descriptor.completion = completion.address;
  return impl_->post(descriptor, Status::ok);
}

Status Driver::put(DestinationRank destination, Mailbox mailbox, std::uint64_t offset, VirtualAddress source,
                   std::uint64_t length, std::uint32_t key, CompletionPointer completion) {
  Descriptor descriptor = window_call(Opcode::put, mailbox);
  descriptor.destination_node = destination.node;
  descriptor.destination_pid = destination.pid;
  descriptor.offset = offset;
  descriptor.local = source;
  descriptor.length = length;
  descriptor.key = key;
  descriptor.completion = completion.address;
  return impl_->put(descriptor);
}

Status Driver::get(DestinationRank destination, Mailbox mailbox, std::uint64_t offset, std::uint64_t length,
                   VirtualAddress buffer, std::uint32_t key, CompletionPointer completion) {
  Descriptor descriptor = window_call(Opcode::get, mailbox);
  descriptor.destination_node = destination.node;
  descriptor.destination_pid = destination.pid;
  descriptor.offset = offset;
  descriptor.local = buffer;
  descriptor.length = length;
  descriptor.key = key;
  descriptor.completion = completion.address;
  return impl_->put(descriptor);
}

Status Driver::inc_epoch(Window window) {
  return impl_->call_on(window, window_call(Opcode::inc_epoch, window.mailbox)).status;
}

Status Driver::get_epoch(Window window, std::uint64_t& completed) {
  const Impl::Answer answer = impl_->call_on(window, window_call(Opcode::get_epoch, window.mailbox));
  if (answer.status == Status::ok) completed = answer.value;
  return answer.status;
}

Status Driver::get_buf_ptrs(Window window, std::uint64_t n, std::vector<CompletedBufferInfo>& buffers) {
  buffers.clear();
  Descriptor descriptor = window_call(Opcode::get_buf_ptrs, window.mailbox);
  descriptor.threshold = n;
  // More than the NIC can remember is never written, only refused.
  const std::uint64_t bytes = n <= impl_->history ? n * kHistoryEntryBytes : 0;
  if (bytes > impl_->history_list_bytes) {
    if (impl_->history_list_bytes > 0) impl_->pinned.free(impl_->history_list, impl_->history_list_bytes);
    impl_->history_list = impl_->pinned.allocate(bytes);
    impl_->history_list_bytes = bytes;
  }
  descriptor.completion = impl_->history_list;
  const Impl::Answer answer = impl_->call_on(window, descriptor);
  if (answer.status != Status::ok) return answer.status;
  for (std::uint64_t i = 0; i < answer.value; ++i) {
    const std::uint64_t entry = impl_->history_list.value() + i * kHistoryEntryBytes;
    buffers.push_back({VirtualAddress{impl_->core.load64(PhysicalAddress{entry})},
                       impl_->core.load64(PhysicalAddress{entry + 8}),
                       Epoch{impl_->core.load64(PhysicalAddress{entry + 16})}});
  }
  return Status::ok;
}

Status Driver::rewind(Window window, std::uint64_t n, std::uint64_t& epoch) {
  Descriptor descriptor = window_call(Opcode::rewind, window.mailbox);
  descriptor.threshold = n;
  // Which posts the NIC has taken decides which epochs they are.
  if (impl_->status_of(window) == Status::ok) impl_->wait_for_answers();
  if (const auto found = impl_->buckets.find(window.mailbox.value()); found != impl_->buckets.end()) {
    descriptor.length = found->second.kept_from;
  }
  const Impl::Answer answer = impl_->call_on(window, descriptor);
  if (answer.status != Status::ok) return answer.status;
  epoch = answer.value;
  impl_->rewound(window.mailbox);
  return answer.status;
}

Status Driver::close_window(Window window) {
  const Status status = impl_->call_on(window, window_call(Opcode::close_window, window.mailbox)).status;
  if (status != Status::ok) return status;
  impl_->return_buffers(window.mailbox);
  return status;
}

Status Driver::status_of(Window window) const { return impl_->status_of(window); }

WaitAnswer Driver::wait(CompletionPointer completion, WaitHow how) { return impl_->wait(completion, how); }

bool Driver::test(CompletionPointer completion) {
  if (!Impl::is_word(completion)) return false;
  impl_->notice_answers();
  const std::uint32_t number = impl_->find(completion.address);
  if (number != kNone && impl_->operations[number].failed) return true;
  if (!impl_->is_written(completion.address)) return false;
  impl_->completed(completion.address);
  return true;
}

void Driver::wait_calls_executed() { impl_->wait_for_answers(); }

void Driver::take_answers() { impl_->notice_answers(); }

CompletionPointer Driver::allocate_completion() { return {impl_->new_word()}; }

void Driver::free_completion(CompletionPointer completion) {
  if (!Impl::is_word(completion)) return;
  impl_->notice_answers();
  const std::uint32_t number = impl_->find(completion.address);
  if (number != kNone) {
    const Impl::Operation& operation = impl_->operations[number];
    const bool is_over = operation.failed || impl_->is_written(completion.address);
    if (!is_over || operation.answer.value() != 0) return;
    impl_->forget(number);
  }
  impl_->pinned.free(completion.address, kWordBytes);
}

bool Driver::waiting_for(CompletionPointer& completion) const {
  if (impl_->is_waiting) completion = impl_->waited;
  return impl_->is_waiting;
}

}  // namespace rvma
