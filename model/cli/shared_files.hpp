/// \file
/// Files of the program and of its user: what is installed beside the program, and what may not be overwritten.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/error.hpp"

namespace rvma::cli {

/// This program's own file; empty if the system does not tell.
std::filesystem::path program_file();
/// share/rvma beside the program: presets, traces, Python packages; in the build tree links to the sources.
std::filesystem::path shared_directory();

/// The file that `--config NAME` means: NAME itself, or the shipped preset of that name if there is no such file.
std::string config_file(const std::string& name);
/// Reads what config_file() found. Where there is no such file, the error lists the presets.
void load_config(const std::string& file, const std::vector<KeyRef>& keys, ErrorList& errors);
/// Whether it is one of the shipped presets.
bool is_preset(const std::string& file);

/// Adds an error if writing `output`, which is that of `--option`, would replace one of `inputs`.
void keep_inputs(const std::string& option, const std::string& output, const std::vector<std::string>& inputs,
                 ErrorList& errors);

}  // namespace rvma::cli
