#include "nic/dma_engine.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace rvma {

/// A transaction with what the engine needs to know when it comes back. Keeps the payload that it points into.
struct DmaEngine::Burst final : tlm::tlm_generic_payload {
  explicit Burst(tlm::tlm_mm_interface* pool) : tlm_generic_payload(pool) { set_extension(&extension); }
  Burst(const Burst&) = delete;
  Burst& operator=(const Burst&) = delete;
  /// The extension is a member: the generic payload must not delete it.
  ~Burst() override { clear_extension(&extension); }

  BurstExtension extension;
  PayloadRef payload;
  std::array<std::uint8_t, 16> word{};
  DmaClient* client = nullptr;  ///< writes
  std::uint64_t tag = 0;        ///< writes
  std::uint64_t number = 0;     ///< writes
  bool last = false;            ///< of its write
  std::uint32_t read = 0;       ///< reads: index of the read
};

/// Recycles transactions, last in first out. Targets may hold some beyond the engine's end: then the pool waits for
/// them by itself.
class DmaEngine::BurstPool final : public tlm::tlm_mm_interface {
 public:
  Burst& acquire() {
    if (free_.empty()) {
      owned_.push_back(std::make_unique<Burst>(this));
      free_.push_back(owned_.back().get());
    }
    Burst* burst = free_.back();
    free_.pop_back();
    burst->acquire();
    return *burst;
  }
  void free(tlm::tlm_generic_payload* transaction) override {
    auto* burst = static_cast<Burst*>(transaction);
    burst->payload.reset();
    free_.push_back(burst);
    if (abandoned_ && free_.size() == owned_.size()) delete this;
  }
  void abandon() {
    abandoned_ = true;
    if (free_.size() == owned_.size()) {
      delete this;
      return;
    }
    for (const std::unique_ptr<Burst>& burst : owned_) burst->payload.reset();
  }

 private:
  std::vector<std::unique_ptr<Burst>> owned_;
  std::vector<Burst*> free_;
  bool abandoned_ = false;
};

DmaEngine::DmaEngine(const sc_core::sc_module_name& name, SimContext& context, const NicConfig& config)
    : Component(name, context, config.clock),
      dma("dma"),
      latency_(config.dma.latency),
      most_reads_(config.dma.reads),
      entered_(config.dma.write_queue, Time::zero()),
      pool_(new BurstPool),
      issue_(*this, "issue",
             [this] {
               take_due_words();
               pump();
             }),
      answer_(*this, "answer", [this] { finish_reads(); }) {
  dma.register_nb_transport_bw(this, &DmaEngine::nb_transport_bw);
  this->context().stats().add(path(), stats_);
  this->context().stats().add_level(path(), "write_queue", stats_.write_queue,
                                    [this]() -> std::uint64_t { return write_count_ - oldest_queued_; });
  this->context().stats().add_level(path(), "reads_outstanding", stats_.reads_outstanding,
                                    [this]() -> std::uint64_t { return outstanding_; });
  this->context().stats().add_level(path(), "read_queue", stats_.read_queue,
                                    [this]() -> std::uint64_t { return read_queue_.size(); });
}

DmaEngine::~DmaEngine() { pool_->abandon(); }

// ---------------------------------------------------------------------------------------------------------- writes

void DmaEngine::write(DmaWrite write, DmaClient& client, Time at) {
  RVMA_ASSERT(write.to.count() > 0, "a DMA write of nothing");
  take_due_words();
  Write job{std::move(write), &client, at, 0};
  if (job.request.is_word && at > now()) {
    // A completion is asked for as soon as its time is known. What is asked for until then and is ready earlier must
    // not wait behind it: it would leave the bus idle.
    const auto place = std::upper_bound(early_words_.begin(), early_words_.end(), at,
                                        [](Time time, const Write& other) { return time < other.at; });
    early_words_.insert(place, std::move(job));
    issue_.at(early_words_.front().at);
    return;
  }
  queue_write(std::move(job));
  pump();
}

void DmaEngine::take_due_words() {
  auto due = early_words_.begin();
  for (; due != early_words_.end() && due->at <= now(); ++due) queue_write(std::move(*due));
  early_words_.erase(early_words_.begin(), due);
  if (!early_words_.empty()) issue_.at(early_words_.front().at);
}

void DmaEngine::queue_write(Write write) {
  ++stats_.writes;
  stats_.write_bytes += write.request.to.total_bytes();
  const Time at = write.at;
  write.number = write_count_++;
  entered_[write.number % entered_.size()] = Time::max();
  if (write_count_ - oldest_queued_ > entered_.size()) oldest_queued_ = write_count_ - entered_.size();
  while (entered_[oldest_queued_ % entered_.size()] <= at) ++oldest_queued_;
  stats_.write_queue.observe(write_count_ - oldest_queued_);
  writes_.push(std::move(write));
}

Time DmaEngine::write_room_at() {
  const Time at = entered_[write_count_ % entered_.size()];
  if (at.is_never()) room_asked_ = true;
  return at;
}

void DmaEngine::on_write_room(std::function<void()> room) { on_room_.push_back(std::move(room)); }

void DmaEngine::issue_write_burst() {
  // 1. The front write's next segment.
  Write& job = writes_.front();
  const DmaWrite& request = job.request;
  if (segment_ == 0) job_visible_ = Time::zero();
  const Segment segment = request.to.segments[segment_];
  const Time begin = cycle_for(job.at, next_write_, stats_.issue_write);
  ++stats_.write_bursts;

  // 2. As a transaction: over the payload itself, or over a word of its own.
  Burst& burst = pool_->acquire();
  std::uint8_t* data = nullptr;
  if (request.is_word) {
    RVMA_ASSERT(segment_offset_ + segment.bytes <= burst.word.size(), "a DMA word is at most 16 bytes");
    for (std::size_t i = 0; i < burst.word.size(); ++i) {
      burst.word[i] = static_cast<std::uint8_t>(request.word[i / 8] >> (8 * (i % 8)));
    }
    data = burst.word.data() + segment_offset_;
  } else if (request.payload) {
    burst.payload = request.payload;
    data = request.payload->data() + request.payload_offset + segment_offset_;
  }
  burst.set_command(tlm::TLM_WRITE_COMMAND);
  burst.set_address(segment.address.value());
  burst.set_data_ptr(data);
  burst.set_data_length(segment.bytes);
  burst.extension.relaxed_ordering = request.relaxed_ordering;
  burst.client = job.client;
  burst.tag = request.tag;
  burst.number = job.number;
  burst.last = ++segment_ == request.to.count();
  segment_offset_ += segment.bytes;
  if (burst.last) {
    segment_ = 0;
    segment_offset_ = 0;
    writes_.pop();
  }
  begin_request(burst, begin);
}

// ----------------------------------------------------------------------------------------------------------- reads

void DmaEngine::read(DmaRead read, DmaClient& client, Time at) {
  RVMA_ASSERT(read.from.count() > 0, "a DMA read of nothing");
  take_due_words();
  const std::uint32_t index = reads_.take();
  ++stats_.reads;
  stats_.read_bytes += read.from.total_bytes();
  reads_[index] = Read{std::move(read), &client, at, 0, 0, 0};
  read_queue_.push(index);
  pump();
  stats_.read_queue.observe(read_queue_.size());
}

void DmaEngine::issue_read_burst() {
  if (!out_of_tags_since_.is_never()) {
    stats_.tags_full.occupy(now() - out_of_tags_since_, 1);
    out_of_tags_since_ = Time::max();
  }
  // 1. The front read's next segment.
  const std::uint32_t index = read_queue_.front();
  Read& job = reads_[index];
  const Segment segment = job.request.from.segments[job.issued];
  const Time begin = cycle_for(std::max(job.at, now()), next_read_, stats_.issue_read);
  ++stats_.read_bursts;

  // 2. As a transaction into the payload itself.
  Burst& burst = pool_->acquire();
  burst.payload = job.request.into;
  burst.set_command(tlm::TLM_READ_COMMAND);
  burst.set_address(segment.address.value());
  burst.set_data_ptr(job.request.into ? job.request.into->data() + job.request.into_offset + job.bytes_out : nullptr);
  burst.set_data_length(segment.bytes);
  burst.extension.relaxed_ordering = false;
  burst.read = index;
  job.bytes_out += segment.bytes;
  if (++job.issued == job.request.from.count()) read_queue_.pop();
  ++outstanding_;
  stats_.reads_outstanding.observe(outstanding_);
  begin_request(burst, begin);
}

void DmaEngine::answer_read(std::uint32_t read, Time at) {
  if (at > now()) {
    answers_.push(Answer{at, answer_count_++, read});
    answer_.at(answers_.top().at);
    return;
  }
  --outstanding_;
  Read& job = reads_[read];
  if (++job.answered < job.request.from.count()) return;
  DmaClient* client = job.client;
  const std::uint64_t tag = job.request.tag;
  job.request.into.reset();
  reads_.give_back(read);
  client->dma_read_done(tag);
}

void DmaEngine::finish_reads() {
  while (!answers_.empty() && answers_.top().at <= now()) {
    const std::uint32_t read = answers_.top().read;
    answers_.pop();
    answer_read(read, now());
  }
  if (!answers_.empty()) answer_.at(answers_.top().at);
  pump();
}

// ------------------------------------------------------------------------------------------------------------- bus

void DmaEngine::pump() {
  // Clients that are told of a write may ask for the next: the outer call goes on with it.
  if (pumping_) return;
  pumping_ = true;
  while (handshake_ == nullptr) {
    const bool can_write = !writes_.empty();
    const bool can_read = !read_queue_.empty() && outstanding_ < most_reads_;
    if (can_read && (reads_turn_ || !can_write)) {
      reads_turn_ = false;
      issue_read_burst();
    } else if (can_write) {
      reads_turn_ = true;
      issue_write_burst();
    } else {
      break;
    }
  }
  if (!read_queue_.empty() && outstanding_ >= most_reads_ && out_of_tags_since_.is_never()) out_of_tags_since_ = now();
  pumping_ = false;
}

Time DmaEngine::cycle_for(Time at, Cycles& next, Utilisation& port) {
  const Cycles cycle = std::max(clock().edge_at_or_after(at) + latency_, next);
  next = cycle + Cycles{1};
  const Time begin = clock().time_of(cycle);
  port.occupy(clock().time_of(next) - begin, 1);
  return std::max(begin, bus_free_at_);
}

void DmaEngine::begin_request(Burst& burst, Time begin) {
  burst.set_streaming_width(burst.get_data_length());
  burst.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  burst.extension.visible = Time::max();
  burst.extension.timing_only = burst.get_data_ptr() == nullptr;
  handshake_ = &burst;
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  sc_core::sc_time delay = SimContext::to_sc(begin > now() ? begin - now() : Time::zero());
  const tlm::tlm_sync_enum answer = dma->nb_transport_fw(burst, phase, delay);
  // Accepted: the rest comes, or has come meanwhile, by nb_transport_bw.
  if (answer == tlm::TLM_ACCEPTED) return;
  const Time at = now() + Time::from_ps(static_cast<std::int64_t>(delay.value()));
  if (answer == tlm::TLM_COMPLETED) {
    request_taken(burst, at, burst.extension.visible);
    response(burst, at);
    return;
  }
  bus_free_at_ = at;
  request_taken(burst, at, Time::max());
  if (phase != tlm::BEGIN_RESP) return;
  phase = tlm::END_RESP;
  dma->nb_transport_fw(burst, phase, delay);
  response(burst, at);
}

void DmaEngine::request_taken(Burst& burst, Time at, Time visible) {
  RVMA_ASSERT(handshake_ == &burst, "the target has ended a request that was not open");
  handshake_ = nullptr;
  if (burst.is_read()) return;
  job_visible_ = std::max(job_visible_, visible);
  if (!burst.last) return;
  // The whole write is in the posted channel.
  if (write_count_ - burst.number <= entered_.size()) entered_[burst.number % entered_.size()] = at;
  burst.client->dma_written(burst.tag, at, job_visible_);
  if (room_asked_ && !entered_[write_count_ % entered_.size()].is_never()) {
    room_asked_ = false;
    for (const std::function<void()>& room : on_room_) room();
  }
}

void DmaEngine::response(Burst& burst, Time at) {
  RVMA_ASSERT(burst.is_response_ok(), "the host answered a DMA burst with " + burst.get_response_string());
  const bool is_read = burst.is_read();
  const std::uint32_t read = burst.read;
  burst.release();
  if (is_read) answer_read(read, at);
}

tlm::tlm_sync_enum DmaEngine::nb_transport_bw(tlm::tlm_generic_payload& transaction, tlm::tlm_phase& phase,
                                              sc_core::sc_time& delay) {
  auto& burst = static_cast<Burst&>(transaction);
  const Time at = now() + Time::from_ps(static_cast<std::int64_t>(delay.value()));
  // A response without END_REQ ends the request as well.
  if (handshake_ == &burst) {
    bus_free_at_ = at;
    request_taken(burst, at, Time::max());
  }
  const bool is_response = phase == tlm::BEGIN_RESP;
  if (is_response) response(burst, at);
  pump();
  return is_response ? tlm::TLM_COMPLETED : tlm::TLM_ACCEPTED;
}

}  // namespace rvma
