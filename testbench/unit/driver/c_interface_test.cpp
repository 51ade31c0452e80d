#include <gtest/gtest.h>

#include "c_program.h"
#include "driver/rvma.h"
#include "mock_nic.hpp"

namespace rvma {
namespace {

TEST(CInterface, AProgramInCRuns) {
  test::Host host;
  host.nic.answer = [](const Descriptor& call) {
    switch (call.opcode) {
      case Opcode::get_epoch:
        return test::MockAnswer{Status::ok, 3};
      case Opcode::rewind:
        return test::MockAnswer{Status::ok, 3 - call.threshold};
      default:
        return test::MockAnswer{};
    }
  };
  // The mock ends no put by itself: this one ends well after it was issued.
  host.nic.do_at(Time::from_us(5), [&host] {
    for (const Descriptor& call : host.nic.executed) {
      if (call.opcode == Opcode::put) host.nic.write_word(call.completion, 1, 64);
    }
  });
  int failed_line = -1;
  EXPECT_TRUE(host.run([&] { failed_line = c_program(c_handle(host.driver)); }));
  EXPECT_EQ(failed_line, 0) << "line of c_program.c";
}

}  // namespace
}  // namespace rvma
