// The program `rvma`: finds the sub-command and turns what escapes it into the documented exit status.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <systemc>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"

namespace {

using namespace rvma::cli;  // NOLINT(google-build-using-namespace): this file is the program around that namespace

struct Command {
  const char* name;
  const char* job;
  int (*run)(const std::vector<std::string>& arguments);
};

constexpr Command kCommands[] = {
    {"run", "simulate a trace and say what limited it", run_command},
    {"compare", "run a trace on RVMA and on the RDMA baseline, side by side", compare_command},
    {"gen", "write a trace of a known pattern", gen_command},
    {"import", "write the trace of another simulator's workload", import_command},
    {"sweep", "expand a specification into design points and run them", sweep_command},
    {"report", "write one HTML page from results", report_command},
    {"regress", "run the regression suite and compare with stored expectations", regress_command},
    {"config", "list all configuration keys, or print the resolved configuration", config_command},
};

void print_usage(std::ostream& out) {
  out << "usage: rvma COMMAND [arguments]\n\n";
  for (const Command& command : kCommands) {
    out << "  " << command.name << std::string(10 - std::string(command.name).size(), ' ') << command.job << "\n";
  }
  out << "\nrvma COMMAND --help lists a command's options.\n";
}

int dispatch(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    print_usage(std::cerr);
    return kBadInput;
  }
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    print_usage(std::cout);
    return kFine;
  }
  if (arguments[0] == "--version") {
    std::cout << "rvma " RVMA_VERSION "\n";
    return kFine;
  }
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    names.emplace_back(command.name);
    if (arguments[0] == command.name) return command.run({arguments.begin() + 1, arguments.end()});
  }
  const std::string near = rvma::nearest_name(arguments[0], names);
  std::cerr << command_line_error("unknown command " + rvma::quoted(arguments[0]),
                                  near.empty() ? "see rvma --help" : "did you mean " + near + "?")
                   .to_string()
            << "\n";
  return kBadInput;
}

int out_of_memory() {
  std::cerr << "rvma: error: the machine gives no more memory; smaller puts and buffers, or fewer at a time, need less "
               "(see run --memory-limit)\n";
  return kFailed;
}

}  // namespace

int sc_main(int argc, char** argv) {
  // The kernel's own chatter (deprecation banners, "simulation stopped") is not a result.
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  try {
    const int status = dispatch({argv + 1, argv + argc});
    std::cout.flush();
    if (!std::cout) {
      std::cerr << "rvma: error: cannot write to standard output\n";
      return status == kFine ? kBadInput : status;
    }
    return status;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& error) {
    // The kernel wraps what escapes a process in a report of its own.
    if (std::string_view{error.what()}.find("bad_alloc") != std::string_view::npos) return out_of_memory();
    std::cerr << "rvma: internal error: " << error.what() << "\n";
    return kInternal;
  }
}

int main(int argc, char** argv) {
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", /*overwrite=*/1);
  return sc_core::sc_elab_and_sim(argc, argv);
}
