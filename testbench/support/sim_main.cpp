// Entry point of every unit test: SystemC's library owns main() and calls sc_main.
#include <gtest/gtest.h>

#include <systemc>

int sc_main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // A warning of the kernel is a mistake in a testbench or a unit: it fails the test that caused it.
  sc_core::sc_report_handler::set_actions(sc_core::SC_WARNING, sc_core::SC_DISPLAY | sc_core::SC_ABORT);
  return RUN_ALL_TESTS();
}
