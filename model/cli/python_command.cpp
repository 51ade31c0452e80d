// The sub-commands that are Python: they start runs of this program and gather what those wrote, and link to none of
// it.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/shared_files.hpp"

namespace rvma::cli {

namespace {

namespace fs = std::filesystem;

/// Becomes `python3 -m rvma_explore.NAME ARGUMENTS`, with the path of this program in RVMA. Returns only if it cannot.
int become_python(const char* name, const std::vector<std::string>& arguments) {
  std::error_code failure;
  const fs::path packages = shared_directory() / "python";
  if (!fs::exists(packages / "rvma_explore", failure)) {
    std::cerr << "rvma: error: " << name << ": its Python package is not at " << packages << "\n";
    return kInternal;
  }
  const char* others = std::getenv("PYTHONPATH");
  const std::string path = packages.string() + (others != nullptr && *others != '\0' ? ":" + std::string{others} : "");
  setenv("PYTHONPATH", path.c_str(), /*overwrite=*/1);
  setenv("RVMA", program_file().c_str(), /*overwrite=*/1);
  setenv("PYTHONDONTWRITEBYTECODE", "1", /*overwrite=*/0);  // the installed tree may not be the user's to write

  std::vector<std::string> words{"python3", "-m", std::string{"rvma_explore."} + name};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::cout.flush();
  execvp("python3", argv.data());
  std::cerr << "rvma: error: " << name << ": cannot start python3: " << std::strerror(errno) << "\n";
  return kInternal;
}

}  // namespace

int sweep_command(const std::vector<std::string>& arguments) { return become_python("sweep", arguments); }
int report_command(const std::vector<std::string>& arguments) { return become_python("report", arguments); }
int regress_command(const std::vector<std::string>& arguments) { return become_python("regress", arguments); }

}  // namespace rvma::cli
