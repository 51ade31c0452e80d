#include "host/core.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace rvma {

namespace {
/// Rank programs are shallow; only the touched part of a stack costs memory.
constexpr int kStackBytes = 256 * 1024;
}  // namespace

Core::Core(const sc_core::sc_module_name& name, SimContext& context, const CoreConfig& config, Pid pid,
           MemoryIf& memory)
    : Component(name, context, config.clock.get()),
      mmio("mmio"),
      pid_(pid),
      memory_(memory),
      issue_(clock().time(config.issue)),
      poll_interval_(std::max(clock().time(config.poll_interval), clock().time_of(Cycles{1}))),
      mwait_wakeup_(clock().time(config.mwait_wakeup)),
      interrupt_latency_(clock().time(config.interrupt_latency)),
      // Named: a module that has to invent a name keeps a generator of names for ever, half a kilobyte a core.
      resume_("resume") {
  context.stats().add(path(), stats_);
}

Core::~Core() = default;

void Core::run(std::function<void()> program) {
  sc_core::sc_spawn_options options;
  options.set_stack_size(kStackBytes);
  const std::string thread_name = std::string{basename()} + "_program";
  finished_ = false;
  thread_ = sc_core::sc_spawn([this, program = std::move(program)] { thread(program); },
                              sc_core::sc_gen_unique_name(thread_name.c_str()), &options);
}

void Core::crash() {
  if (thread_.valid() && !thread_.terminated()) thread_.kill();
  unwatch();
  resume_.cancel();
  sleep_ = Sleep::none;
  waiting_ = false;
  finished_ = true;
}

void Core::thread(const std::function<void()>& program) {
  context().count_activation();
  program();
  finished_ = true;
}

// ------------------------------------------------------------------------------------------------- spending time

void Core::pause(Time time) {
  if (time == Time::zero()) return;
  context().count_notification();
  sc_core::wait(SimContext::to_sc(time));
  context().count_activation();
}

void Core::spend_issue() {
  ++stats_.calls;
  stats_.issue_ns += issue_;
  stats_.issue.occupy(issue_, 1);
  pause(issue_);
}

void Core::compute(Time time) {
  stats_.compute_ns += time;
  computing_until_ = now() + time;
  pause(time);
  computing_until_ = Time::zero();
}

// ------------------------------------------------------------------------------------------------ memory and the NIC

void Core::mmio_write(std::uint64_t address, const void* bytes, std::uint32_t length) {
  write_.set_command(tlm::TLM_WRITE_COMMAND);
  write_.set_address(address);
  // The generic payload has one pointer for both directions; a write's target only reads through it.
  write_.set_data_ptr(static_cast<unsigned char*>(const_cast<void*>(bytes)));
  write_.set_data_length(length);
  write_.set_streaming_width(length);
  write_.set_byte_enable_ptr(nullptr);
  write_.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  mmio->b_transport(write_, delay);
  RVMA_ASSERT(write_.is_response_ok(), "the NIC accepts every write of its driver");
  ++stats_.mmio_writes;
}

std::uint64_t Core::load64(PhysicalAddress address) {
  std::uint8_t bytes[8];
  memory_.read(address, bytes, sizeof bytes);
  std::uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | bytes[i];
  return value;
}

// ------------------------------------------------------------------------------------------------------- waiting

void Core::resume_after(Time delay) {
  context().count_notification();
  resume_.notify(SimContext::to_sc(delay));
}

void Core::block() {
  waiting_ = true;
  sc_core::wait(resume_);
  context().count_activation();
  waiting_ = false;
  sleep_ = Sleep::none;
}

void Core::watch(PhysicalAddress word) {
  watched_.push_back(memory_.watch(word, 8, [this] { on_word_written(); }));
}

void Core::unwatch() {
  for (const std::uint64_t handle : watched_) memory_.unwatch(handle);
  watched_.clear();
}

/// The monitor saw a write: the thread goes on after what noticing it costs, in one step.
void Core::on_word_written() {
  // The one that has fired is gone already.
  if (watched_.size() > 1) unwatch();
  watched_.clear();
  woken_at_ = now();
  if (sleep_ == Sleep::mwait) {
    resume_after(mwait_wakeup_);
    return;
  }
  if (completes_in_software_) {
    // It is the poll itself that wrote the word.
    stats_.polls +=
        static_cast<std::uint64_t>((woken_at_ - sleep_from_).ps() / std::max<std::int64_t>(1, poll_interval_.ps()));
    sleep_from_ = woken_at_;
    resume_after(Time::zero());
    return;
  }
  const std::int64_t interval = poll_interval_.ps();
  const std::int64_t since = (woken_at_ - sleep_from_).ps();
  const std::int64_t polls = std::max<std::int64_t>(1, (since + interval - 1) / interval);
  stats_.polls += static_cast<std::uint64_t>(polls);
  sleep_from_ += poll_interval_ * polls;
  resume_after(sleep_from_ - woken_at_);
}

void Core::mwait(PhysicalAddress word) {
  sleep_ = Sleep::mwait;
  sleep_from_ = now();
  watch(word);
  block();
  ++stats_.wakeups;
  stats_.asleep_ns += woken_at_ - sleep_from_;
  stats_.burned_ns += mwait_wakeup_;
}

void Core::wait_any(const std::vector<PhysicalAddress>& words, WaitHow how, sc_core::sc_event* wake) {
  const auto is_written = [this](PhysicalAddress word) { return load64(word) != 0; };
  const bool polls = completes_in_software_ || how == WaitHow::poll;
  if (polls) ++stats_.polls;
  if (std::any_of(words.begin(), words.end(), is_written)) return;
  const Time start = now();
  sleep_ = polls ? Sleep::poll : Sleep::mwait;
  sleep_from_ = start;
  woken_at_ = Time::max();
  for (const PhysicalAddress word : words) watch(word);
  waiting_ = true;
  if (wake == nullptr) {
    sc_core::wait(resume_);
  } else {
    sc_core::wait(resume_ | *wake);
  }
  context().count_activation();
  waiting_ = false;
  const bool by_word = !woken_at_.is_never();
  // Woken by both at once, or while the wake-up from mwait is on its way.
  resume_.cancel();
  unwatch();
  if (polls) {
    stats_.burned_ns += now() - start;
  } else {
    stats_.asleep_ns += (by_word ? woken_at_ : now()) - start;
    if (by_word) {
      ++stats_.wakeups;
      stats_.burned_ns += mwait_wakeup_;
    }
  }
  sleep_ = Sleep::none;
}

void Core::wait_change(PhysicalAddress address, std::uint64_t old) {
  while (load64(address) == old) mwait(address);
}

Time Core::wait_nonzero(PhysicalAddress word, WaitHow how, const std::function<void()>& arm) {
  if (completes_in_software_) how = WaitHow::poll;
  switch (how) {
    case WaitHow::mwait:
      wait_change(word, 0);
      break;
    case WaitHow::poll: {
      const Time start = now();
      ++stats_.polls;
      sleep_from_ = start;
      while (load64(word) == 0) {
        sleep_ = Sleep::poll;
        watch(word);
        block();
      }
      stats_.burned_ns += now() - start;
      break;
    }
    case WaitHow::interrupt:
      if (load64(word) != 0) break;
      arm();
      while (load64(word) == 0) {
        sleep_ = Sleep::interrupt;
        sleep_from_ = now();
        block();
        stats_.asleep_ns += woken_at_ - sleep_from_;
        stats_.burned_ns += interrupt_latency_;
      }
      break;
  }
  return now();
}

void Core::interrupt() {
  ++stats_.interrupts;
  if (sleep_ != Sleep::interrupt) return;
  sleep_ = Sleep::none;
  woken_at_ = now();
  resume_after(interrupt_latency_);
}

void Core::block_on(sc_core::sc_event& wake) {
  waiting_ = true;
  sc_core::wait(wake);
  context().count_activation();
  waiting_ = false;
}

}  // namespace rvma
