// SystemC's library refers to sc_main from its own main(); libFuzzer's main() is the one that runs.
#include <cstdlib>
#include <systemc>

int sc_main(int /*argc*/, char** /*argv*/) { std::abort(); }
