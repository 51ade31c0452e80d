#include "workload/trace.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "workload/trace_checker.hpp"
#include "workload/trace_cursor.hpp"
#include "workload/trace_program.hpp"
#include "workload/trace_text.hpp"

namespace rvma {

struct Trace::Impl {
  std::string source;
  std::unique_ptr<trace_detail::TextSource> text;
  trace_detail::CheckedTrace checked;
  std::uint64_t operations = 0;
  std::uint64_t puts = 0;
  std::vector<std::vector<MessagePeer>> peers;  ///< by rank; empty: nobody sends messages
  trace_detail::Statement scratch;              ///< of all cursors
  trace_detail::Program no_program;             ///< of a rank without a block

  const trace_detail::Program& program(RankId rank) const {
    RVMA_ASSERT(rank.value() < checked.ranks, "no such rank");
    const auto& program = checked.programs[rank.index()];
    return program == nullptr ? no_program : *program;
  }

  /// Null if `source` is no text or has mistakes.
  static std::unique_ptr<Impl> check(Result<std::unique_ptr<trace_detail::TextSource>> text, const std::string& source,
                                     ErrorList& errors) {
    if (!text) {
      errors.add(text.error());
      return nullptr;
    }
    auto impl = std::make_unique<Impl>();
    impl->source = source;
    impl->text = std::move(*text);
    const std::uint64_t before = errors.count();
    impl->checked = trace_detail::check_trace(*impl->text, source, errors);
    if (errors.count() != before) return nullptr;
    for (const auto& program : impl->checked.programs) {
      if (program == nullptr) continue;
      impl->operations = trace_detail::saturating_multiply_add(1, program->operations, impl->operations);
      impl->puts = trace_detail::saturating_multiply_add(1, program->puts, impl->puts);
    }
    impl->find_peers();
    return impl;
  }

  /// Both ends of every pair know each other: what is sent has to be received, and answers go the other way.
  void find_peers() {
    const auto peer = [this](std::uint32_t rank, std::uint32_t other) -> MessagePeer& {
      std::vector<MessagePeer>& all = peers[rank];
      const auto place = std::lower_bound(all.begin(), all.end(), other,
                                          [](const MessagePeer& p, std::uint32_t r) { return p.rank.value() < r; });
      if (place != all.end() && place->rank.value() == other) return *place;
      return *all.insert(place, MessagePeer{RankId{other}, 0});
    };
    for (std::uint32_t rank = 0; rank < checked.ranks; ++rank) {
      const auto& program = checked.programs[rank];
      if (program == nullptr || program->peers.empty()) continue;
      peers.resize(checked.ranks);
      for (const auto& [other, use] : program->peers) {
        peer(rank, other);
        MessagePeer& there = peer(other, rank);
        there.longest = std::max(there.longest, use.longest_send);
      }
    }
  }
};

Trace::Trace() = default;
Trace::~Trace() = default;

std::unique_ptr<Trace> Trace::open(const std::string& path, ErrorList& errors) {
  const std::string source = path == "-" ? "<stdin>" : path;
  std::unique_ptr<Impl> impl = Impl::check(trace_detail::open_text(path, source), source, errors);
  if (impl == nullptr) return nullptr;
  std::unique_ptr<Trace> trace(new Trace);
  trace->impl_ = std::move(impl);
  return trace;
}

std::unique_ptr<Trace> Trace::from_text(std::string_view text, const std::string& source, ErrorList& errors) {
  std::unique_ptr<Impl> impl = Impl::check(trace_detail::text_in_memory(text, source), source, errors);
  if (impl == nullptr) return nullptr;
  std::unique_ptr<Trace> trace(new Trace);
  trace->impl_ = std::move(impl);
  return trace;
}

std::uint32_t Trace::ranks() const { return impl_->checked.ranks; }
std::uint64_t Trace::total_operations() const { return impl_->operations; }
std::uint64_t Trace::total_puts() const { return impl_->puts; }
const std::vector<std::string>& Trace::names(RankId rank) const { return impl_->program(rank).names(); }
const std::vector<std::string>& Trace::warnings() const { return impl_->checked.warnings; }

const std::vector<std::pair<RankId, Position>>& Trace::restart_blocks() const { return impl_->checked.restart_blocks; }

bool Trace::has_messages() const { return !impl_->peers.empty(); }
bool Trace::has_catch_all() const {
  const auto opens = [](const auto& program) { return program != nullptr && program->has_catch_all; };
  const auto& checked = impl_->checked;
  return std::any_of(checked.programs.begin(), checked.programs.end(), opens) ||
         std::any_of(checked.restart_programs.begin(), checked.restart_programs.end(), opens);
}
const std::vector<MessagePeer>& Trace::message_peers(RankId rank) const {
  static const std::vector<MessagePeer> nobody;
  return impl_->peers.empty() ? nobody : impl_->peers[rank.index()];
}

std::string Trace::spelling(RankId rank, const NameRef& name) const {
  const std::vector<std::string>& all =
      name.restarted ? impl_->checked.restart_programs[rank.index()]->names() : names(rank);
  std::string text = all.at(name.name);
  for (const std::uint64_t pass : name.passes) text += "." + std::to_string(pass);
  return text;
}

Position Trace::position(const Operation& operation) const {
  constexpr std::size_t kPiece = 64 * 1024;
  std::vector<char> piece(kPiece);
  Position position{impl_->source, 1, 1};
  for (std::uint64_t at = 0; at < operation.place;) {
    const std::size_t wanted = std::min<std::uint64_t>(kPiece, operation.place - at);
    const std::size_t got = impl_->text->read(at, piece.data(), wanted);
    for (std::size_t i = 0; i < got; ++i) {
      position.column = piece[i] == '\n' ? 1 : position.column + 1;
      if (piece[i] == '\n') ++position.line;
    }
    if (got < wanted) break;
    at += got;
  }
  return position;
}

std::unique_ptr<Trace::Cursor> Trace::cursor(RankId rank) const {
  return trace_detail::make_cursor(*impl_->text, impl_->program(rank), trace_detail::cursor_budget(ranks()),
                                   impl_->scratch);
}

namespace {

/// Marks the names of a restart block as its own.
class RestartCursor : public Trace::Cursor {
 public:
  explicit RestartCursor(std::unique_ptr<Trace::Cursor> block) : block_(std::move(block)) {}
  const Operation* next() override {
    const Operation* const operation = block_->next();
    if (operation == nullptr) return nullptr;
    marked_ = *operation;
    marked_.name.restarted = true;
    for (NameRef& operand : marked_.operands) operand.restarted = true;
    return &marked_;
  }

 private:
  std::unique_ptr<Trace::Cursor> block_;
  Operation marked_;
};

}  // namespace

std::unique_ptr<Trace::Cursor> Trace::restart_cursor(RankId rank) const {
  const auto& programs = impl_->checked.restart_programs;
  if (rank.index() >= programs.size() || programs[rank.index()] == nullptr) return nullptr;
  return std::make_unique<RestartCursor>(trace_detail::make_cursor(
      *impl_->text, *programs[rank.index()], trace_detail::cursor_budget(ranks()), impl_->scratch));
}

}  // namespace rvma
