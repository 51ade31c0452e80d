#include "report/message_log.hpp"

#include <fmt/format.h>
#include <libdeflate.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "base/random.hpp"
#include "base/value_text.hpp"
#include "workload/payload_pattern.hpp"

namespace rvma {

std::size_t MessageLog::Hash::operator()(const Key& key) const {
  return static_cast<std::size_t>(mix64(key.ranks ^ mix64(key.place)));
}

MessageLog::MessageLog(const Trace& trace, std::ostream* out, RunRecorder::ReadBuffer read, Fail fail)
    : trace_(trace), out_(out), read_(std::move(read)), fail_(std::move(fail)) {
  if (out_ != nullptr) *out_ << "rank,kind,name,peer,tag,size,protocol,status,issue_ns,end_ns,crc32\n";
}

MessageLog::Key MessageLog::channel_of(const MessageIssue& message) {
  const bool is_send = message.kind == OperationKind::send;
  const std::uint64_t from = is_send ? message.rank.value() : message.peer.value();
  const std::uint64_t to = is_send ? message.peer.value() : message.rank.value();
  return {from << 32U | to, std::uint64_t{message.tag} << 32U};
}

void MessageLog::message_issued(const MessageIssue& message) {
  Open open;
  open.issue = message;
  if (message.name != nullptr) open.name = *message.name;
  if (fail_) {
    Key place = channel_of(message);
    Channel& channel = channels_[place];
    const bool is_send = message.kind == OperationKind::send;
    open.ordinal = (is_send ? channel.sends : channel.receives)++;
    place.place |= open.ordinal;
    if (is_send) sent_[place] = {message.size, message.seed};
  }
  open_[Key{message.rank.value(), message.number}] = std::move(open);
}

void MessageLog::message_ended(const MessageEnd& end) {
  const auto found = open_.find(Key{end.rank.value(), end.number});
  RVMA_ASSERT(found != open_.end(), "a message ended that no program issued, or twice");
  const Open open = std::move(found->second);
  open_.erase(found);
  const bool is_received = open.issue.kind == OperationKind::recv && end.status == Status::ok;
  bytes_.clear();
  if (is_received && read_ && end.size > 0) read_(end.node, end.pid, end.memory, end.size, bytes_);
  if (fail_ && open.issue.kind == OperationKind::recv) check(open, end);
  if (out_ == nullptr) return;
  const std::string crc =
      is_received && read_ ? fmt::format("{:08x}", libdeflate_crc32(0, bytes_.data(), bytes_.size())) : std::string{};
  const std::string status = end.status != Status::ok ? ValueText<Status>::print(end.status)
                                                       : ValueText<Outcome>::print(end.outcome);
  rows_.add(*out_, end.rank, row(open, end.rendezvous ? "rendezvous" : "eager", status, end.at, crc));
}

void MessageLog::check(const Open& open, const MessageEnd& end) {
  Key place = channel_of(open.issue);
  place.place |= open.ordinal;
  const auto say = [&](const std::string& what) {
    fail_(end.at, fmt::format("rank {}: message {} of tag {} from rank {} {}", open.issue.rank.value(), open.ordinal,
                              open.issue.tag, open.issue.peer.value(), what));
  };
  const auto found = sent_.find(place);
  if (found == sent_.end()) return say("was received, but not sent");
  const Sent sent = found->second;
  sent_.erase(found);
  if (sent.size != end.size) say(fmt::format("came with {} bytes, {} were sent", end.size, sent.size));
  const bool fits = sent.size <= open.issue.size;
  if (fits != (end.status == Status::ok)) say(fits ? "was refused, but fits" : "does not fit, but was received");
  const std::size_t right = matching_pattern_bytes(bytes_.data(), bytes_.size(), sent.seed, 0);
  if (right < bytes_.size()) say(fmt::format("has a wrong byte {}", right));
}

std::string MessageLog::row(const Open& open, const char* protocol, const std::string& status, Time at,
                            const std::string& crc) {
  const MessageIssue& issue = open.issue;
  const std::string name = issue.name == nullptr ? std::string{} : trace_.spelling(issue.rank, open.name);
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", issue.rank.value(),
                     ValueText<OperationKind>::print(issue.kind), name, issue.peer.value(), issue.tag, issue.size,
                     protocol, status, to_ns_string(issue.at), at.is_never() ? std::string{} : to_ns_string(at), crc);
}

void MessageLog::finish() {
  if (out_ == nullptr) return;
  rows_.flush(*out_);
  std::vector<const Open*> left;
  for (const auto& [key, open] : open_) left.push_back(&open);
  std::sort(left.begin(), left.end(), [](const Open* a, const Open* b) {
    return std::tie(a->issue.rank, a->issue.number) < std::tie(b->issue.rank, b->issue.number);
  });
  for (const Open* open : left) *out_ << row(*open, "", "unfinished", Time::max(), "");
}

}  // namespace rvma
