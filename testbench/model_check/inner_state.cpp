// What the model is inside, field by field. The lists of names below have to be complete: a field that is added to one
// of these classes makes this file fail to compile, until somebody has decided what it means here.
#include "model_under_test.hpp"
#include "nic/window_store_state.hpp"

namespace rvma {

/// Reads the private parts of the model's plain classes, which name it as their friend.
struct StateReader {
  explicit StateReader(check::Digester& out) : out_(out) {}

  void read(const WindowStore& windows) {
    const auto& [mtu, binds_all, history_capacity, counter_capacity, most_catch_alls, slots, buffer_ids, all, buffers,
                 bindings, closed, closed_answers, slot_of, catch_all_of, counters_in_use, posts, due, expired, on_due,
                 on_expired, listener, stats, binding_stats] = *windows.impl_;
    // The same in all states of a scenario.
    (void)mtu, (void)binds_all, (void)history_capacity, (void)counter_capacity, (void)most_catch_alls, (void)on_due,
        (void)on_expired;
    (void)listener, (void)binding_stats;
    read(slots);
    read(buffer_ids);
    for (std::uint32_t i = 0; i < slots.made(); ++i) read(all[WindowId{i}]);
    for (std::uint32_t i = 0; i < buffer_ids.made(); ++i) read(buffers[BufferId{i}]);
    read(bindings);
    // One window is made, so that the others need no more than their number.
    put(slot_of.size());
    put(catch_all_of.size());
    (void)closed, (void)closed_answers;  // ModelUnderTest asks them for its one mailbox
    put(counters_in_use);
    put(posts);
    put(due.size());
    put(expired.size());
    // Statistics decide nothing; of these the check itself makes use.
    put(stats.messages_bound.value() - stats.messages_counted.value() - stats.messages_cut_off.value());
  }

  void read(const ReceiveContext& context) {
    const auto& [incarnation, generation, window, most_messages, base, next_expected, seen, disposed, disposals,
                 messages, ok_prefix, bound, abandoned, outcomes_end, budget] = context;
    (void)most_messages;
    put(incarnation);
    put(generation);
    put(base);
    put(next_expected);
    for (std::uint32_t from = 0; from < window; from += 64) {
      put(seen.bits_from(from));
      put(disposed.bits_from(from));
    }
    put(disposals.size());
    for (const auto& [sequence, at] : disposals) put(sequence, at.ps());
    put(messages.base());
    put(messages.size());
    for (std::uint32_t id = messages.base(); id != messages.end(); ++id) {
      const auto& [state, outcome, told, binding, told_from] = messages[id];
      put(state, outcome, told, binding, told_from.ps());
    }
    put(ok_prefix, bound, outcomes_end);
    put(abandoned.size());
    for (const auto& [message, binding] : abandoned) put(message, binding);
    const auto& [most, told] = budget;
    (void)most;
    put(told.size());
    for (FifoRing<Time> left = told; !left.empty();) put(left.pop().ps());
  }

  template <class... Parts>
  void put(const Parts&... parts) {
    (out_.put(number(parts)), ...);
  }

 private:
  template <class Part>
  static std::uint64_t number(const Part& part) {
    if constexpr (std::is_arithmetic_v<Part> || std::is_enum_v<Part>) {
      return static_cast<std::uint64_t>(part);
    } else {
      return part.value();
    }
  }

  /// In which order numbers come free decides nothing before 32 are free; the check never has so many.
  void read(const IndexAllocator& numbers) { put(numbers.made(), numbers.in_use()); }

  void read(const store::Window& window) {
    const auto& [state, pid, mailbox, generation, key, threshold, threshold_type, placement, flags, one_time, oldest,
                 active, newest, retired_epochs, completed_epochs, activity, unfinished, history, drained, rewound] =
        window;
    put(state, pid, mailbox, generation, key, threshold, threshold_type, placement, flags, one_time, oldest, active,
        newest, retired_epochs, completed_epochs, activity, unfinished);
    put(history.size());
    for (std::size_t age = 0; age < history.size(); ++age) {
      const auto& [descriptor, length, epoch] = history.at(age);
      read(descriptor);
      put(length, epoch);
    }
    put(drained != nullptr);
    put(rewound.size());
    for (const auto& [buffer, word] : rewound) put(buffer, word);
  }

  void read(const store::Buffer& buffer) {
    const auto& [descriptor, window, generation, next, epoch, reserved, tail, delivered, unfinished, has_counter,
                 retired, broken] = buffer;
    read(descriptor);
    put(window, generation, next, epoch, reserved, tail, delivered, unfinished, has_counter, retired, broken);
  }

  void read(const BufferDescriptor& descriptor) {
    const auto& [pid, head, size, page_list, single_page, word, posting] = descriptor;
    put(pid, head, size, page_list, single_page, word, posting);
  }

  void read(const BindingStore& bindings) {
    const auto& [capacity, entries, free] = bindings;
    (void)capacity;
    put(entries.size());
    for (const Binding& entry : entries) read(entry);
    put(free.size());
    for (const std::uint32_t entry : free) put(entry);
  }

  void read(const Binding& binding) {
    const auto& [in_use, source, source_pid, destination_pid, mailbox, key, message, offset, message_length, buffer,
                 message_offset, counted, record_bytes, on_the_way, cut_off, placed] = binding;
    put(in_use, record_bytes);
    if (!in_use) return;  // bind() writes all the others anew
    put(source, source_pid, destination_pid, mailbox, key, message, offset, message_length, buffer, message_offset,
        counted, on_the_way, cut_off);
    const auto& [words, first_word] = placed;
    put(first_word, words.size());
    for (const std::uint64_t word : words) put(word);
  }

  check::Digester& out_;
};

namespace check {

Digest ModelUnderTest::inner_state() const {
  Digester out;
  StateReader reader{out};
  reader.read(store_);
  reader.put(is_remembered_as_closed());
  reader.put(slot_, in_table_, drained_, rewound_, is_closed_);
  reader.put(contexts_.size());
  for (const auto& [sender, context] : contexts_) {
    reader.put(sender, context.generation);
    reader.read(context.receive);
  }
  for (const std::optional<OnTheWay>& moving : on_the_way_) {
    reader.put(moving.has_value());
    if (!moving) continue;
    const auto& [arrival, buffer, has_binding, binding, payload_length] = *moving;
    reader.put(arrival.sender, arrival.generation, arrival.sequence, arrival.id);
    reader.put(buffer, has_binding, binding, payload_length);
  }
  for (const std::uint64_t word : word_) reader.put(word);
  for (const auto& [id, number] : numbers_) reader.put(id, number);
  return out.digest();
}

}  // namespace check
}  // namespace rvma
