/// \file
/// Options of `rvma run` that record what happened: a timeline (--timeline) and captured packets (--pcap).
#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/last_words.hpp"
#include "nic/observer.hpp"
#include "platform/config.hpp"
#include "report/atomic_file.hpp"
#include "report/packet_capture.hpp"
#include "report/put_registry.hpp"
#include "report/timeline.hpp"
#include "report/timeline_writer.hpp"
#include "workload/trace.hpp"

namespace rvma::cli {

struct RecordingOptions {
  std::string timeline;  ///< file; empty: none
  Timeline::Options timeline_options;
  std::string pcap;  ///< file; empty: none
  PacketCapture::Options pcap_options;
};

void add_recording_options(boost::program_options::options_description& options);
/// What is wrong goes to `errors`.
RecordingOptions read_recording_options(const boost::program_options::variables_map& values, ErrorList& errors);

/// The two files. Both appear under their names when the run is over, however it ends: after a broken invariant or an
/// exception with a remark that says so.
class Recording {
 public:
  explicit Recording(const RecordingOptions& options) : options_(options) {}
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording();

  /// Before the run, which has so many nodes: what cannot be recorded or written goes to `errors`.
  void open(std::uint32_t nodes, ErrorList& errors);
  /// Adds itself to `observers`, behind `registry`. All outlive it. `run` is what is known before the end.
  void attach(PutRegistry& registry, const Trace& trace, const Config& config, TimelineRun run,
              ObserverList& observers);
  /// Writes both files. A line for the user about each that does not have everything.
  std::vector<std::string> finish(Time end, const std::vector<std::string>& problems, ErrorList& errors);

 private:
  void write(Time end, const std::vector<std::string>& problems);
  void save(const std::vector<std::string>& problems);

  const RecordingOptions& options_;
  std::uint32_t nodes_ = 0;
  TimelineRun run_;
  std::unique_ptr<AtomicFile> timeline_file_;
  std::unique_ptr<AtomicFile> pcap_file_;
  std::unique_ptr<Timeline> timeline_;
  std::unique_ptr<PacketCapture> capture_;
  std::unique_ptr<LastWords> last_words_;
  bool is_written_ = false;
};

}  // namespace rvma::cli
