// Arbitrary bytes as a workload of any import format (the first byte chooses): no crash, every mistake at a place
// within the text, and what is accepted is a trace that the reader accepts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string_view>
#include <vector>

#include "workload/import.hpp"
#include "workload/trace.hpp"

namespace {

using namespace rvma;

void require(bool holds, std::string_view what) {
  if (holds) return;
  std::cerr << "fuzz_import: " << what << '\n';
  std::abort();
}

void check_places(const ImportLog& log, std::size_t size) {
  for (const Error& error : log.errors().shown()) {
    const bool is_within = error.position.line >= 1 && error.position.column >= 1 && error.position.line <= size + 1 &&
                           error.position.column <= size + 1;
    require(is_within, "a mistake stands outside the text");
    require(!error.what.empty(), "a mistake says nothing");
  }
}

void check_trace(const std::string& text, const ImportLog& log) {
  require(text.empty() == !log.errors().empty(), "neither a trace nor a mistake, or both");
  if (text.empty()) return;
  ErrorList mistakes;
  const auto trace = Trace::from_text(text, "imported.trace", mistakes);
  if (trace == nullptr) mistakes.print(std::cerr);
  require(trace != nullptr, "the trace of an import is refused");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // 'a', 'b', .. so that seeds can be written by hand; behind the last format the HPCC topology, and then the formats
  // with a file for each rank, with two ranks whose files say the same (so that collectives match).
  const std::vector<ImportFormat>& formats = import_formats();
  const std::size_t letter = static_cast<std::size_t>(data[0] + 256U - 'a') % (2 * formats.size() + 1);
  const bool is_pair = letter > formats.size();
  const std::size_t choice = is_pair ? letter - formats.size() - 1 : letter;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const bool is_topology = choice == formats.size();
  auto opened = trace_detail::text_in_memory(text, "fuzz", {"fuzz", "text", !is_topology && formats[choice].is_binary});
  if (!opened) return 0;
  std::vector<ImportSource> sources;
  sources.push_back({"fuzz", std::move(*opened)});
  ImportLog log;
  std::ostringstream out;
  if (is_topology) {
    std::ostringstream config;
    import_topology(sources.front(), "fuzz.links", out, config, log);
    require(config.str().empty() == !log.errors().empty(), "neither a configuration nor a mistake, or both");
    check_places(log, size);
    return 0;
  }
  if (!formats[choice].missing.empty()) return 0;
  if (is_pair) {
    auto again = trace_detail::text_in_memory(text, "fuzz", {"fuzz", "text", formats[choice].is_binary});
    if (!again || !formats[choice].file_a_rank) return 0;
    sources.push_back({"fuzz", std::move(*again)});
  }
  import_workload(formats[choice], sources, {}, out, log);
  check_places(log, size);
  check_trace(out.str(), log);
  return 0;
}
