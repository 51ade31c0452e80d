#include "report/put_registry.hpp"

#include <algorithm>
#include <utility>

#include "base/random.hpp"

namespace rvma {

std::size_t PutRegistry::Hash::operator()(const AnswerKey& key) const {
  return static_cast<std::size_t>(mix64(key.mailbox ^ mix64(std::uint64_t{key.node} << 16U | key.pid)));
}
std::size_t PutRegistry::Hash::operator()(const WordKey& key) const {
  return static_cast<std::size_t>(mix64(key.word ^ (std::uint64_t{key.node.value()} << 40U)));
}

void PutRegistry::bury() {
  if (std::exchange(has_counted_, false)) {
    by_message_.erase(counted_);
    uncounted_.erase(counted_);
  }
  if (!has_ended_) return;
  has_ended_ = false;
  const auto found = by_word_.find(ended_);
  if (found == by_word_.end()) return;
  if (found->second.has_window) by_window_.erase(found->second.window);
  if (ended_in_doubt_) {
    give_up(found->second);
    by_word_.erase(found);
    return;
  }
  forget_answer(found->second);
  if (found->second.has_message) {
    PutRecord& record = *found->second.record;
    if (may_end_first_ && ended_ok_ && record.kind == OperationKind::put && !record.is_whole) {
      uncounted_.emplace(found->second.message, std::move(found->second.record));
    } else {
      by_message_.erase(found->second.message);
    }
  }
  by_word_.erase(found);
}

/// It has ended in doubt: what it has sent, or has been sent for it, may yet arrive.
void PutRegistry::give_up(Entry& entry) {
  entry.record->is_given_up = true;
  if (entry.has_window) by_late_window_.insert_or_assign(entry.window, entry.record.get());
  if (entry.answer) {
    entry.answer->is_given_up = true;
    given_up_.push_back(std::move(entry.answer));
  }
  if (entry.has_window || entry.has_message) given_up_.push_back(std::move(entry.record));
}

void PutRegistry::forget_answer(Entry& entry) {
  if (!entry.answer) return;
  by_message_.erase(entry.answer_message);
  entry.answer.reset();
}

void PutRegistry::get_opened(NodeId node, Pid pid, WindowId /*slot*/, BufferId /*buffer*/, const Descriptor& window,
                             Time /*at*/) {
  bury();
  const WordKey word{node, window.completion.value()};
  const auto found = by_word_.find(word);
  RVMA_ASSERT(found != by_word_.end(), "a window was opened for a get that no program issued");
  found->second.window = AnswerKey{node.value(), pid.value(), window.mailbox.value()};
  found->second.has_window = true;
  PutRecord& record = *found->second.record;
  record.answer_mailbox = window.mailbox;
  record.answer_key = window.key;
  by_window_.insert_or_assign(found->second.window, word);
}

/// An answer is a put into the asker's window; what it carries is known to whoever watches it leave. One whose get has
/// ended otherwise than in `timeout` is nobody's.
void PutRegistry::answer_opened(NodeId /*node*/, NodeId destination, Pid pid, Mailbox mailbox,
                                const MessageRef& message, Time /*at*/) {
  bury();
  const AnswerKey window{destination.value(), pid.value(), mailbox.value()};
  if (const auto waiting = by_window_.find(window); waiting != by_window_.end()) {
    Entry& entry = by_word_.at(waiting->second);
    forget_answer(entry);
    entry.answer = answer_to(*entry.record);
    entry.answer_message = MessageKey(destination, message);
    by_message_.insert_or_assign(entry.answer_message, entry.answer.get());
  } else if (const auto late = by_late_window_.find(window); late != by_late_window_.end()) {
    given_up_.push_back(answer_to(*late->second));
    by_message_.insert_or_assign(MessageKey(destination, message), given_up_.back().get());
  }
}

Pool<PutRecord>::Handle PutRegistry::answer_to(const PutRecord& get) {
  Pool<PutRecord>::Handle made = pool_.acquire();
  PutRecord& answer = *made;
  answer.rank = get.destination;
  answer.node = get.destination_node;
  answer.kind = OperationKind::get;
  answer.destination = get.rank;
  answer.destination_node = get.node;
  answer.destination_pid = get.pid;
  answer.mailbox = get.answer_mailbox;
  answer.size = get.size;
  answer.offset = 0;
  answer.key = get.answer_key;
  answer.word = get.word;
  answer.is_answer = true;
  answer.is_given_up = get.is_given_up;
  answer.issued = get.issued;
  answer.number = get.number;
  answer.measured = get.measured;
  return made;
}

PutRecord& PutRegistry::issue(const PutIssue& put) {
  bury();
  Entry entry;
  entry.record = pool_.acquire();
  PutRecord& record = *entry.record;
  record.rank = put.rank;
  record.node = put.node;
  record.kind = put.kind;
  record.has_name = put.name != nullptr;
  if (put.name != nullptr) record.name = *put.name;
  record.destination = put.destination;
  record.destination_node = put.destination_node;
  record.destination_pid = put.destination_pid;
  record.mailbox = put.mailbox;
  record.size = put.size;
  record.offset = put.offset;
  record.key = put.key;
  record.seed = put.seed;
  record.word = put.word;
  record.pid = put.pid;
  record.memory = put.memory;
  record.issued = put.at;
  record.number = issued_++;
  const auto [place, is_new] = by_word_.insert_or_assign(WordKey{put.node, put.word.value()}, std::move(entry));
  RVMA_ASSERT(is_new, "two open puts of one node share a completion word");
  return *place->second.record;
}

PutRecord* PutRegistry::find(NodeId node, PhysicalAddress word) {
  const auto found = by_word_.find(WordKey{node, word.value()});
  return found == by_word_.end() ? nullptr : found->second.record.get();
}

PutRecord* PutRegistry::find(NodeId destination, const MessageRef& message) {
  const auto found = by_message_.find(MessageKey(destination, message));
  return found == by_message_.end() ? nullptr : found->second;
}

std::vector<const PutRecord*> PutRegistry::open() const {
  std::vector<const PutRecord*> records;
  for (const auto& [key, entry] : by_word_) {
    if (!has_ended_ || !(key == ended_)) records.push_back(entry.record.get());
  }
  std::sort(records.begin(), records.end(),
            [](const PutRecord* a, const PutRecord* b) { return a->number < b->number; });
  return records;
}

void PutRegistry::message_opened(NodeId node, PhysicalAddress put, NodeId destination, const MessageRef& message,
                                 Time /*at*/) {
  bury();
  const auto found = by_word_.find(WordKey{node, put.value()});
  RVMA_ASSERT(found != by_word_.end(), "a message was opened for a put that no program issued");
  Entry& entry = found->second;
  if (entry.has_message) by_message_.erase(entry.message);
  entry.message = MessageKey(destination, message);
  entry.has_message = true;
  ++entry.record->tries;
  by_message_.insert_or_assign(entry.message, entry.record.get());
}

void PutRegistry::message_counted(NodeId node, const MessageRef& message, BufferId /*buffer*/, Time /*at*/) {
  if (!may_end_first_) return;
  bury();
  const MessageKey key(node, message);
  if (const auto found = by_message_.find(key); found != by_message_.end()) found->second->is_whole = true;
  has_counted_ = uncounted_.contains(key);
  counted_ = key;
}

void PutRegistry::put_ended(NodeId node, PhysicalAddress put, Outcome outcome, std::uint32_t /*tries*/, Time /*at*/) {
  bury();
  has_ended_ = true;
  ended_in_doubt_ = outcome == Outcome::timeout;
  ended_ok_ = outcome == Outcome::ok;
  ended_ = WordKey{node, put.value()};
}

}  // namespace rvma
