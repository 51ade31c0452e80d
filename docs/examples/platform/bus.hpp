// A small host of one's own: memory, bus and CPU, blocking TLM-2.0 and nothing of the model in them.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <systemc>
#include <tlm>
#include <utility>
#include <vector>

constexpr std::uint64_t kDeviceBase = 0x8000'0000;  // on the bus; memory lies below

class OwnMemory : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<OwnMemory> socket{"socket"};

  OwnMemory(const sc_core::sc_module_name& name, std::size_t size) : sc_module(name), bytes_(size) {
    socket.register_b_transport(this, &OwnMemory::access);
  }

 private:
  void access(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay) {
    wait(delay + sc_core::sc_time(60, sc_core::SC_NS));
    delay = sc_core::SC_ZERO_TIME;
    const std::uint64_t address = transaction.get_address();
    const std::uint64_t length = transaction.get_data_length();
    if (address > bytes_.size() || length > bytes_.size() - address) {
      transaction.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
      return;
    }
    if (transaction.is_read()) {
      std::memcpy(transaction.get_data_ptr(), bytes_.data() + address, length);
    } else {
      std::memcpy(bytes_.data() + address, transaction.get_data_ptr(), length);
    }
    transaction.set_response_status(tlm::TLM_OK_RESPONSE);
  }
  std::vector<std::uint8_t> bytes_;
};

// Two masters, the CPU and a device; two targets, the memory and the device's registers.
class OwnBus : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<OwnBus> from_cpu{"from_cpu"};
  tlm_utils::simple_target_socket<OwnBus> from_device{"from_device"};
  tlm_utils::simple_initiator_socket<OwnBus> to_memory{"to_memory"};
  tlm_utils::simple_initiator_socket<OwnBus> to_device{"to_device"};

  explicit OwnBus(const sc_core::sc_module_name& name) : sc_module(name) {
    from_cpu.register_b_transport(this, &OwnBus::route);
    from_device.register_b_transport(this, &OwnBus::route);
  }

 private:
  void route(tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay) {
    const std::uint64_t address = transaction.get_address();
    delay += sc_core::sc_time(5, sc_core::SC_NS);
    if (address < kDeviceBase) {
      to_memory->b_transport(transaction, delay);
      return;
    }
    transaction.set_address(address - kDeviceBase);
    to_device->b_transport(transaction, delay);
    transaction.set_address(address);
  }
};

class OwnCpu : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<OwnCpu> socket{"socket"};

  OwnCpu(const sc_core::sc_module_name& name, std::function<void(OwnCpu&)> program)
      : sc_module(name), program_(std::move(program)) {
    SC_HAS_PROCESS(OwnCpu);
    SC_THREAD(run);
  }

  void write(std::uint64_t address, const void* from, std::size_t length) {
    std::vector<std::uint8_t> bytes(length);
    std::memcpy(bytes.data(), from, length);
    access(tlm::TLM_WRITE_COMMAND, address, bytes.data(), length);
  }
  void read(std::uint64_t address, void* to, std::size_t length) {
    access(tlm::TLM_READ_COMMAND, address, static_cast<std::uint8_t*>(to), length);
  }
  std::uint64_t load(std::uint64_t address) {  // the machine that simulates is little endian, like the RNIC
    std::uint64_t value = 0;
    read(address, &value, sizeof value);
    return value;
  }
  std::uint64_t wait_until_written(std::uint64_t address) {
    std::uint64_t value = 0;
    while ((value = load(address)) == 0) wait(100, sc_core::SC_NS);
    return value;
  }

 private:
  void run() { program_(*this); }
  void access(tlm::tlm_command command, std::uint64_t address, std::uint8_t* data, std::size_t length) {
    tlm::tlm_generic_payload transaction;
    transaction.set_command(command);
    transaction.set_address(address);
    transaction.set_data_ptr(data);
    transaction.set_data_length(static_cast<unsigned>(length));
    transaction.set_streaming_width(static_cast<unsigned>(length));
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    socket->b_transport(transaction, delay);
    if (!transaction.is_response_ok()) throw std::runtime_error("bus error: " + transaction.get_response_string());
    wait(delay);
  }
  std::function<void(OwnCpu&)> program_;
};
