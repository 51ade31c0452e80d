#include <algorithm>
#include <vector>

#include "driver/driver.hpp"
#include "driver/rvma.h"

// The C enumerations are the C++ ones, number by number.
static_assert(RVMA_OK == static_cast<int>(rvma::Status::ok));
static_assert(RVMA_EXISTS == static_cast<int>(rvma::Status::exists));
static_assert(RVMA_FULL == static_cast<int>(rvma::Status::full));
static_assert(RVMA_NO_WINDOW == static_cast<int>(rvma::Status::no_window));
static_assert(RVMA_NO_BUFFER == static_cast<int>(rvma::Status::no_buffer));
static_assert(RVMA_CLOSED == static_cast<int>(rvma::Status::closed));
static_assert(RVMA_HISTORY == static_cast<int>(rvma::Status::history));
static_assert(RVMA_BAD_ARGUMENT == static_cast<int>(rvma::Status::bad_argument));
static_assert(RVMA_UNSUPPORTED == static_cast<int>(rvma::Status::unsupported));
static_assert(RVMA_OUTCOME_PENDING == static_cast<int>(rvma::Outcome::pending));
static_assert(RVMA_OUTCOME_OK == static_cast<int>(rvma::Outcome::ok));
static_assert(RVMA_OUTCOME_NO_MAILBOX == static_cast<int>(rvma::Outcome::no_mailbox));
static_assert(RVMA_OUTCOME_CLOSED == static_cast<int>(rvma::Outcome::closed));
static_assert(RVMA_OUTCOME_BAD_KEY == static_cast<int>(rvma::Outcome::bad_key));
static_assert(RVMA_OUTCOME_STALE == static_cast<int>(rvma::Outcome::stale));
static_assert(RVMA_OUTCOME_NO_BUFFER == static_cast<int>(rvma::Outcome::no_buffer));
static_assert(RVMA_OUTCOME_BOUNDS == static_cast<int>(rvma::Outcome::bounds));
static_assert(RVMA_OUTCOME_BUSY == static_cast<int>(rvma::Outcome::busy));
static_assert(RVMA_OUTCOME_TIMEOUT == static_cast<int>(rvma::Outcome::timeout));
static_assert(RVMA_THRESHOLD_BYTES == static_cast<int>(rvma::ThresholdType::bytes));
static_assert(RVMA_THRESHOLD_OPS == static_cast<int>(rvma::ThresholdType::ops));
static_assert(RVMA_STEERED == static_cast<int>(rvma::Placement::steered));
static_assert(RVMA_MANAGED == static_cast<int>(rvma::Placement::managed));
static_assert(RVMA_WAIT_MWAIT == static_cast<int>(rvma::WaitHow::mwait));
static_assert(RVMA_WAIT_POLL == static_cast<int>(rvma::WaitHow::poll));
static_assert(RVMA_WAIT_INTERRUPT == static_cast<int>(rvma::WaitHow::interrupt));
static_assert(RVMA_READABLE == static_cast<int>(rvma::kWindowReadable));
static_assert(RVMA_CATCH_ALL == static_cast<int>(rvma::kWindowCatchAll));
static_assert(RVMA_INTERRUPT == static_cast<int>(rvma::kWindowInterrupt));

namespace {

/// The handle is the driver under another name; RVMA_Process is never defined.
rvma::Driver& driver_of(RVMA_Process* process) { return *reinterpret_cast<rvma::Driver*>(process); }
RVMA_Status to_c(rvma::Status status) { return static_cast<RVMA_Status>(status); }
rvma::Window window_of(RVMA_Window window) { return {rvma::Mailbox{window.mailbox}, window.opening}; }
rvma::CompletionPointer word_of(RVMA_Completion completion) { return {rvma::PhysicalAddress{completion}}; }
bool is_power_of_two(std::uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

}  // namespace

RVMA_Process* rvma::c_handle(Driver& driver) { return reinterpret_cast<RVMA_Process*>(&driver); }

RVMA_Status RVMA_Init_window(RVMA_Process* process, RVMA_Mailbox mailbox, uint64_t threshold, RVMA_Threshold_type type,
                             RVMA_Placement placement, uint32_t key, unsigned flags, RVMA_Window* window) {
  if (window == nullptr) return RVMA_BAD_ARGUMENT;
  *window = {mailbox, rvma::Window::kNeverOpened};
  // C enumerations hold anything; so may the flags.
  if (flags > 0xff) return RVMA_BAD_ARGUMENT;
  if (type != RVMA_THRESHOLD_BYTES && type != RVMA_THRESHOLD_OPS) return RVMA_BAD_ARGUMENT;
  if (placement != RVMA_STEERED && placement != RVMA_MANAGED) return RVMA_BAD_ARGUMENT;
  rvma::Window opened;
  const rvma::Status status = driver_of(process).init_window(
      rvma::Mailbox{mailbox}, threshold, static_cast<rvma::ThresholdType>(type),
      static_cast<rvma::Placement>(placement), key, static_cast<std::uint8_t>(flags), opened);
  *window = {opened.mailbox.value(), opened.opening};
  return to_c(status);
}

RVMA_Status RVMA_Post_buffer(RVMA_Process* process, RVMA_Window window, RVMA_Address buffer, uint64_t size,
                             RVMA_Completion completion) {
  return to_c(
      driver_of(process).post_buffer(window_of(window), rvma::VirtualAddress{buffer}, size, word_of(completion)));
}

RVMA_Status RVMA_Post_one_time_buffer(RVMA_Process* process, RVMA_Mailbox mailbox, uint64_t threshold,
                                      RVMA_Threshold_type type, uint32_t key, RVMA_Address buffer, uint64_t size,
                                      RVMA_Completion completion) {
  if (type != RVMA_THRESHOLD_BYTES && type != RVMA_THRESHOLD_OPS) return RVMA_BAD_ARGUMENT;
  return to_c(driver_of(process).post_one_time_buffer(rvma::Mailbox{mailbox}, threshold,
                                                      static_cast<rvma::ThresholdType>(type), key,
                                                      rvma::VirtualAddress{buffer}, size, word_of(completion)));
}

RVMA_Status RVMA_Put(RVMA_Process* process, uint32_t node, uint16_t pid, RVMA_Mailbox mailbox, uint64_t offset,
                     RVMA_Address source, uint64_t length, uint32_t key, RVMA_Completion completion) {
  return to_c(driver_of(process).put({rvma::NodeId{node}, rvma::Pid{pid}}, rvma::Mailbox{mailbox}, offset,
                                     rvma::VirtualAddress{source}, length, key, word_of(completion)));
}

RVMA_Status RVMA_Get(RVMA_Process* process, uint32_t node, uint16_t pid, RVMA_Mailbox mailbox, uint64_t offset,
                     uint64_t length, RVMA_Address buffer, uint32_t key, RVMA_Completion completion) {
  return to_c(driver_of(process).get({rvma::NodeId{node}, rvma::Pid{pid}}, rvma::Mailbox{mailbox}, offset, length,
                                     rvma::VirtualAddress{buffer}, key, word_of(completion)));
}

RVMA_Status RVMA_Inc_epoch(RVMA_Process* process, RVMA_Window window) {
  return to_c(driver_of(process).inc_epoch(window_of(window)));
}

RVMA_Status RVMA_Get_epoch(RVMA_Process* process, RVMA_Window window, uint64_t* completed) {
  if (completed == nullptr) return RVMA_BAD_ARGUMENT;
  return to_c(driver_of(process).get_epoch(window_of(window), *completed));
}

RVMA_Status RVMA_Get_buf_ptrs(RVMA_Process* process, RVMA_Window window, size_t n, RVMA_Buffer_info* buffers,
                              size_t* count) {
  if (count == nullptr || (buffers == nullptr && n > 0)) return RVMA_BAD_ARGUMENT;
  std::vector<rvma::CompletedBufferInfo> found;
  const rvma::Status status = driver_of(process).get_buf_ptrs(window_of(window), n, found);
  *count = std::min<size_t>(n, found.size());
  for (size_t i = 0; i < *count; ++i) {
    buffers[i] = {found[i].head.value(), found[i].length, found[i].epoch.value()};
  }
  return to_c(status);
}

RVMA_Status RVMA_Rewind(RVMA_Process* process, RVMA_Window window, uint64_t n, uint64_t* epoch) {
  if (epoch == nullptr) return RVMA_BAD_ARGUMENT;
  return to_c(driver_of(process).rewind(window_of(window), n, *epoch));
}

RVMA_Status RVMA_Close_window(RVMA_Process* process, RVMA_Window window) {
  return to_c(driver_of(process).close_window(window_of(window)));
}

RVMA_Status RVMA_Wait(RVMA_Process* process, RVMA_Completion completion, RVMA_Wait_how how, RVMA_Word* word) {
  if (how != RVMA_WAIT_MWAIT && how != RVMA_WAIT_POLL && how != RVMA_WAIT_INTERRUPT) return RVMA_BAD_ARGUMENT;
  const rvma::WaitAnswer answer = driver_of(process).wait(word_of(completion), static_cast<rvma::WaitHow>(how));
  if (word != nullptr) *word = {answer.first, answer.second};
  return to_c(answer.status);
}

int RVMA_Test(RVMA_Process* process, RVMA_Completion completion) {
  return driver_of(process).test(word_of(completion)) ? 1 : 0;
}

RVMA_Completion RVMA_Alloc_completion(RVMA_Process* process) {
  return driver_of(process).allocate_completion().address.value();
}

void RVMA_Free_completion(RVMA_Process* process, RVMA_Completion completion) {
  driver_of(process).free_completion(word_of(completion));
}

RVMA_Address RVMA_Alloc(RVMA_Process* process, uint64_t bytes, uint64_t align) {
  if (bytes == 0 || !is_power_of_two(align)) return 0;
  return driver_of(process).space().allocate(bytes, align).value();
}

void RVMA_Free(RVMA_Process* process, RVMA_Address address) {
  driver_of(process).space().free(rvma::VirtualAddress{address});
}

void RVMA_Read(RVMA_Process* process, RVMA_Address address, void* to, size_t bytes) {
  driver_of(process).space().read(rvma::VirtualAddress{address}, to, bytes);
}

void RVMA_Write(RVMA_Process* process, RVMA_Address address, const void* from, size_t bytes) {
  driver_of(process).space().write(rvma::VirtualAddress{address}, from, bytes);
}
