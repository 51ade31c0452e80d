/// \file
/// A host with one core and, behind its MMIO socket, a NIC that does what the test says: it takes descriptors one after
/// another and writes answers and completions at given times.
#pragma once

#include <tlm_utils/simple_target_socket.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/component.hpp"
#include "driver/driver.hpp"
#include "host/memory.hpp"

namespace rvma::test {

struct MockAnswer {
  Status status = Status::ok;
  std::uint64_t value = 0;
};

class MockNic : public Component {
 public:
  tlm_utils::simple_target_socket<MockNic> mmio;

  MockNic(const sc_core::sc_module_name& name, SimContext& sim, Memory& host_memory, const NicConfig& nic)
      : Component(name, sim, nic.clock),
        mmio("mmio"),
        memory(host_memory),
        config(nic),
        wakeup_(*this, "wakeup", [this] { work(); }) {
    mmio.register_b_transport(this, &MockNic::b_transport);
  }

  /// Writes a completion word at `when`, and the interrupt if the word is armed.
  void complete_at(Time when, CompletionPointer word, std::uint64_t first, std::uint64_t second) {
    do_at(when, [this, word, first, second] {
      write_word(word.address, first, second);
      if (armed.erase(word.address.value()) != 0) core->interrupt();
    });
  }
  void do_at(Time when, std::function<void()> step) {
    steps_.insert({{when.ps(), order_++}, std::move(step)});
    wakeup_.at(when);
  }
  void write_word(PhysicalAddress word, std::uint64_t first, std::uint64_t second) {
    std::uint8_t bytes[16];
    for (unsigned i = 0; i < 8; ++i) {
      bytes[i] = static_cast<std::uint8_t>(first >> (8 * i));
      bytes[8 + i] = static_cast<std::uint8_t>(second >> (8 * i));
    }
    memory.write(word, bytes, sizeof bytes);
  }

  Memory& memory;
  const NicConfig& config;
  Core* core = nullptr;
  Driver* driver = nullptr;
  Time answer_delay = Time::from_ns(500);  ///< from a descriptor's arrival to its answer's visibility
  bool stalled = false;                    ///< executes nothing while set
  std::function<MockAnswer(const Descriptor&)> answer = [](const Descriptor&) { return MockAnswer{}; };

  std::vector<Descriptor> executed;
  std::vector<std::uint64_t> addresses;             ///< of MMIO writes
  std::vector<std::vector<std::uint8_t>> payloads;  ///< behind inline descriptors
  std::set<std::uint64_t> armed;
  std::uint64_t arms = 0;
  std::uint64_t arrived = 0;
  std::uint64_t consumed = 0;
  std::uint64_t most_unconsumed = 0;

  void resume() {
    stalled = false;
    execute();
  }

 private:
  void b_transport(tlm::tlm_generic_payload& transaction, sc_core::sc_time& /*delay*/) {
    addresses.push_back(transaction.get_address());
    const std::uint64_t offset = transaction.get_address() % kMmioPageBytes;
    if (offset == kInlineOffset && transaction.get_data_length() >= kDescriptorBytes) {
      DescriptorBytes bytes;
      payloads.emplace_back(transaction.get_data_ptr() + kDescriptorBytes,
                            transaction.get_data_ptr() + transaction.get_data_length());
      std::memcpy(bytes.data(), transaction.get_data_ptr(), bytes.size());
      arrive(bytes);
    } else if (offset == kDoorbellOffset && transaction.get_data_length() == 8) {
      std::uint64_t tail = 0;
      for (unsigned i = 8; i-- > 0;) tail = tail << 8U | transaction.get_data_ptr()[i];
      while (arrived < tail) {
        DescriptorBytes bytes;
        const std::uint64_t slot = arrived % config.command.depth;
        memory.read(PhysicalAddress{driver->ring_base().value() + slot * kDescriptorBytes}, bytes.data(), bytes.size());
        arrive(bytes);
      }
    }
    transaction.set_response_status(tlm::TLM_OK_RESPONSE);
    execute();
  }
  void arrive(const DescriptorBytes& bytes) {
    ++arrived;
    most_unconsumed = std::max(most_unconsumed, arrived - consumed);
    const auto descriptor = decode_descriptor(bytes);
    RVMA_ASSERT(descriptor.has_value(), "the driver wrote something that is no descriptor");
    waiting_.push_back(*descriptor);
  }
  void execute() {
    while (!stalled && !waiting_.empty()) {
      const Descriptor descriptor = waiting_.front();
      waiting_.pop_front();
      executed.push_back(descriptor);
      if (descriptor.opcode == Opcode::arm_interrupt) {
        ++arms;
        armed.insert(descriptor.completion.value());
        std::uint64_t written = 0;
        memory.read(descriptor.completion, &written, sizeof written);
        if (written != 0 && armed.erase(descriptor.completion.value()) != 0) {
          do_at(now(), [this] { core->interrupt(); });
        }
      }
      if (descriptor.response.value() != 0) {
        do_at(now() + answer_delay, [this, descriptor] {
          const MockAnswer given = answer(descriptor);
          write_word(descriptor.response, static_cast<std::uint64_t>(given.status), given.value);
        });
      }
      if (++consumed % std::max(1U, config.command.depth / 4) == 0) {
        do_at(now() + answer_delay, [this, count = consumed] { write_word(driver->consumed_word(), count, 0); });
      }
    }
  }
  void work() {
    while (!steps_.empty() && steps_.begin()->first.first <= now().ps()) {
      const auto step = steps_.extract(steps_.begin());
      step.mapped()();
    }
    if (!steps_.empty()) wakeup_.at(Time::from_ps(steps_.begin()->first.first));
  }

  std::deque<Descriptor> waiting_;
  std::map<std::pair<std::int64_t, std::uint64_t>, std::function<void()>> steps_;
  std::uint64_t order_ = 0;
  Wakeup wakeup_;
};

/// Notes what it is told.
struct CallLog : DriverObserver {
  struct Answered {
    Opcode opcode;
    PhysicalAddress completion;
    Status status;
    std::uint64_t value;
    Time at;
  };
  void call_issued(RankId rank, const Descriptor& call, Time at) override {
    ranks.insert(rank.value());
    issued.push_back({call.opcode, call.completion, Status::ok, 0, at});
  }
  void call_answered(RankId rank, const Descriptor& call, Status status, std::uint64_t value, Time at) override {
    ranks.insert(rank.value());
    answered.push_back({call.opcode, call.completion, status, value, at});
  }
  std::set<std::uint32_t> ranks;
  std::vector<Answered> issued;
  std::vector<Answered> answered;
};

struct Host {
  explicit Host(const NicConfig& nic_config = {}, std::uint16_t pid = 3)
      : config(nic_config),
        memory("memory", context, host_config),
        frames(host_config.page, 1),
        core("core", context, host_config.core, Pid{pid}, memory),
        space(memory, frames),
        nic("nic", context, memory, config),
        driver(RankId{9}, core, space, frames, config, &log) {
    core.mmio.bind(nic.mmio);
    nic.core = &core;
    nic.driver = &driver;
  }
  /// Runs `program` to its end; false: it is still blocked.
  bool run(std::function<void()> program) {
    core.run(std::move(program));
    sc_core::sc_start();
    return core.finished();
  }
  static Time now() { return SimContext::now(); }

  SimContext context{1};
  HostConfig host_config;
  NicConfig config;
  CallLog log;
  Memory memory;
  FrameAllocator frames;
  Core core;
  AddressSpace space;
  MockNic nic;
  Driver driver;
};

}  // namespace rvma::test
