/// \file
/// The sub-commands of `rvma`. Each takes the arguments behind its name and returns the exit status.
#pragma once

#include <string>
#include <vector>

namespace rvma::cli {

int run_command(const std::vector<std::string>& arguments);
/// One of the runs of `rvma compare`: what the user sets is for both protocols, but for rdma.ooo_tracking, which is
/// compare's own.
int run_for_compare(const std::vector<std::string>& arguments, bool tracks_order);
int compare_command(const std::vector<std::string>& arguments);
int gen_command(const std::vector<std::string>& arguments);
int import_command(const std::vector<std::string>& arguments);
int config_command(const std::vector<std::string>& arguments);
int sweep_command(const std::vector<std::string>& arguments);
int report_command(const std::vector<std::string>& arguments);
int regress_command(const std::vector<std::string>& arguments);

}  // namespace rvma::cli
