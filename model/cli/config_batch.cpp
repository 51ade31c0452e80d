#include "cli/config_batch.hpp"

#include <boost/json.hpp>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "cli/no_effect.hpp"

namespace rvma::cli {
namespace {

namespace json = boost::json;

/// The assignments of a line; empty if it holds something else.
std::optional<std::vector<std::string>> read_assignments(const std::string& line) {
  boost::system::error_code failure;
  const json::value parsed = json::parse(line, failure);
  if (failure || !parsed.is_array()) return std::nullopt;
  std::vector<std::string> assignments;
  for (const json::value& entry : parsed.get_array()) {
    if (!entry.is_string()) return std::nullopt;
    assignments.emplace_back(entry.get_string().data(), entry.get_string().size());
  }
  return assignments;
}

json::value mistakes(const ErrorList& errors, bool values) {
  json::array list;
  for (const Error& error : errors.shown()) {
    list.push_back(json::object{{"what", json::string(error.what)}, {"expected", json::string(error.expected)}});
  }
  return json::object{{"errors", std::move(list)}, {"values", values}};
}

json::value answer(const std::vector<std::string>& assignments, Config config, std::uint32_t ranks, Protocol protocol) {
  ErrorList errors;
  const std::vector<KeyRef> keys = keys_of(config);
  for (const std::string& assignment : assignments) apply_set(assignment, keys, errors);
  if (!errors.empty()) return mistakes(errors, true);
  validate(config, ranks, errors);
  if (errors.empty() && protocol == Protocol::rdma) validate_rdma(config, ranks, errors);
  if (!errors.empty()) return mistakes(errors, false);
  json::array warnings;
  for (const std::string& warning : keys_without_effect(config, ranks, protocol))
    warnings.emplace_back(json::string(warning));
  for (const std::string& key : keys_of_other_protocol(config, protocol)) {
    warnings.emplace_back(json::string(describe_other_protocol({key}, protocol)));
  }
  return json::object{{"config", config_to_json(keys)}, {"warnings", std::move(warnings)}};
}

}  // namespace

bool answer_batch(std::istream& in, const std::string& source, const Config& base, std::uint32_t ranks,
                  Protocol protocol, std::ostream& out) {
  std::uint64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const auto assignments = read_assignments(line);
    if (!assignments) {
      ErrorList errors;
      errors.add(Position{source, number, 1}, "not a list of assignments: " + quoted(line),
                 R"(expected a line such as ["nic.clock=1GHz","nic.mtu=4KiB"])");
      errors.print(std::cerr);
      return false;
    }
    out << json::serialize(answer(*assignments, base, ranks, protocol)) << "\n";
  }
  return true;
}

void describe_config_json(std::ostream& out, const std::vector<KeyRef>& keys) {
  out << "[\n";
  const char* separator = "";
  for (const auto& [path, key] : keys) {
    json::object entry{{"key", json::string(path)},
                       {"type", json::string(key->type_name())},
                       {"default", json::string(key->default_text())}};
    const std::string range = key->range_text();
    if (const std::size_t dots = range.find(".."); dots != std::string::npos) {
      entry["min"] = json::string(range.substr(0, dots));
      entry["max"] = json::string(range.substr(dots + 2));
    }
    entry["meaning"] = json::string(key->description());
    out << separator << "  " << json::serialize(entry);
    separator = ",\n";
  }
  out << "\n]\n";
}

}  // namespace rvma::cli
