/// \file
/// The model's own receive path behind the vocabulary of the check: window store and receive contexts, called as the
/// RNIC's units call them, and in their order (address_conversion.cpp, payload_writer.cpp, counter_unit.cpp,
/// window_calls.cpp, delivery_unit.cpp). A value that can be copied.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "digest.hpp"
#include "nic/delivery.hpp"
#include "nic/window_store.hpp"
#include "scenario.hpp"

namespace rvma::check {

class ModelUnderTest {
 public:
  /// All of it outlives the object.
  ModelUnderTest(const Scenario& scenario, const std::vector<MessageSpec>& messages, const NicConfig& config);
  static NicConfig config_of(const Scenario& scenario);

  /// `arrival` counts for packets only.
  Observed apply(const Action& action, const Arrival& arrival);
  /// An acknowledgement leaves to each sender.
  void acknowledge();
  /// Takes what an acknowledgement would say; changes nothing that another one would not change.
  Snapshot snapshot();
  /// Messages bound, and neither counted nor cut off, as the store's statistics tell.
  std::int64_t unaccounted();
  /// Of everything inside that may decide what the model does next; equal for models that will do the same.
  Digest inner_state() const;

 private:
  struct Context {
    std::uint32_t generation;
    ReceiveContext receive;
  };
  struct OnTheWay {
    Arrival arrival;
    BufferId buffer;
    bool has_binding = false;
    std::uint32_t binding = 0;
    std::uint32_t payload_length = 0;  ///< bytes
    PlacedPacket packet() const;
  };

  void open(const Scenario& scenario);
  Observed arrive(unsigned message, unsigned packet, const Arrival& arrival);
  void bind(const DataHeader& header, unsigned message, const Arrival& arrival, Observed& seen);
  void place(const BufferPlace& where, const DataHeader& header, unsigned message, const Arrival& arrival,
             Observed& seen);
  Observed land(unsigned message, unsigned packet);
  Observed rewind(std::uint64_t n);
  Observed finish_rewind();
  Observed close();
  void end_close();
  void silence(unsigned sender);
  void take(Observed& seen);
  void reap();

  ReceiveContext& context_of(const Arrival& arrival);
  /// Null: the context has gone since.
  ReceiveContext* context_if_current(const Arrival& arrival);
  DataHeader header_of(unsigned message, unsigned packet, const Arrival& arrival) const;
  int number_of(BufferId buffer) const;
  bool is_remembered_as_closed() const;

  const Scenario& scenario_;
  const std::vector<MessageSpec>& messages_;
  WindowStore store_;
  WindowId slot_;
  bool in_table_ = false;
  bool drained_ = false;       ///< what a call waited for has landed
  std::uint64_t rewound_ = 0;  ///< words that a rewind zeroes
  bool is_closed_ = false;
  std::map<unsigned, Context> contexts_;
  std::array<std::optional<OnTheWay>, kMostMessages * kMostPackets> on_the_way_;
  std::array<std::uint64_t, kMostBuffers> word_{};
  std::map<std::uint32_t, int> numbers_;  ///< of the buffers, by id
  /// Whose call is being made: what the store calls back has to find its way from a copied store to the copy's owner.
  static ModelUnderTest* running_;
};

}  // namespace rvma::check
