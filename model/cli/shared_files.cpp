#include "cli/shared_files.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "cli/command_line.hpp"

namespace rvma::cli {

namespace fs = std::filesystem;

fs::path program_file() {
  std::error_code failure;
  return fs::read_symlink("/proc/self/exe", failure);
}

namespace {

constexpr const char* kPresetSuffix = ".json";

fs::path preset_directory() { return shared_directory() / "presets"; }

/// Their names, in order.
std::vector<std::string> presets() {
  std::vector<std::string> names;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(preset_directory(), failure)) {
    if (entry.path().extension() == kPresetSuffix) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

fs::path shared_directory() { return program_file().parent_path().parent_path() / "share" / "rvma"; }

std::string config_file(const std::string& name) {
  std::error_code failure;
  if (fs::exists(name, failure) || name.find('/') != std::string::npos) return name;
  const fs::path preset = preset_directory() / (name + kPresetSuffix);
  return fs::exists(preset, failure) ? preset.string() : name;
}

void load_config(const std::string& file, const std::vector<KeyRef>& keys, ErrorList& errors) {
  std::error_code failure;
  // With a `/` it is a path, and not meant to be a preset's name.
  if (fs::exists(file, failure) || file.find('/') != std::string::npos) {
    load_config_file(file, keys, errors);
    return;
  }
  std::string expected = "expected a configuration file";
  const char* separator = ", or a preset: ";
  for (const std::string& name : presets()) expected += std::exchange(separator, ", ") + name;
  errors.add(Position{file, 1, 1},
             "the file cannot be read: " + std::make_error_code(std::errc::no_such_file_or_directory).message(),
             expected);
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
