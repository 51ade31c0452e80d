#include "cli/shared_files.hpp"

#include <system_error>

#include "cli/command_line.hpp"

namespace rvma::cli {

namespace fs = std::filesystem;

fs::path program_file() {
  std::error_code failure;
  return fs::read_symlink("/proc/self/exe", failure);
}

namespace {
fs::path preset_directory() { return shared_directory() / "presets"; }
}  // namespace

fs::path shared_directory() { return program_file().parent_path().parent_path() / "share" / "rvma"; }

std::string config_file(const std::string& name) {
  std::error_code failure;
  if (fs::exists(name, failure) || name.find('/') != std::string::npos) return name;
  const fs::path preset = preset_directory() / (name + ".json");
  return fs::exists(preset, failure) ? preset.string() : name;
}

bool is_preset(const std::string& file) {
  std::error_code failure;
  return fs::equivalent(fs::absolute(file, failure).parent_path(), preset_directory(), failure);
}

void keep_inputs(const std::string& option, const std::string& output, const std::vector<std::string>& inputs,
                 ErrorList& errors) {
  for (const std::string& input : inputs) {
    std::error_code failure;
    // Devices and pipes are read and written at the same time by intent.
    if (!fs::is_regular_file(input, failure) || !fs::equivalent(output, input, failure)) continue;
    errors.add(command_line_error("--" + option + ": " + quoted(output) + " is what is read", "expected another file"));
    return;
  }
}

}  // namespace rvma::cli
