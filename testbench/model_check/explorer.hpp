/// \file
/// Walks through every state that a scenario can reach, the reference and the model side by side.
#pragma once

#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "digest.hpp"
#include "model_under_test.hpp"
#include "reference.hpp"
#include "scenario.hpp"

namespace rvma::check {

struct Findings {
  std::uint64_t states = 0;        ///< different ones of the reference
  std::uint64_t inner_states = 0;  ///< different ones of reference and model together
  std::uint64_t transitions = 0;   ///< steps compared, one for each action that an inner state allows
  bool cut_short = false;          ///< there are more
  std::string failure;             ///< empty: none; else the steps that lead to it, and what differs
};

/// Depth first. A state is the reference's, the model's, and whether one of the events may still happen; states that
/// are equal are gone on from once. Any packet that has arrived may come again at any point, as often as it likes. Each
/// transition is made by a copy of the reference and by one of the model, and has to show the same. Fixed endings (see
/// Ending) go on for longer than one event allows.
class Explorer {
 public:
  explicit Explorer(const Scenario& scenario);
  /// `most_states`: stops there (0: no limit).
  Findings explore(std::uint64_t most_states);

 private:
  struct State {
    Reference reference;
    bool event_left;
  };
  enum class Ending : std::uint8_t { finish, probe };

  void visit(const State& state, const ModelUnderTest& model);
  bool repeat_packets(const State& state, const ModelUnderTest& model);
  bool take(const State& state, const ModelUnderTest& model, const Action& action);
  bool is_stopped();
  std::vector<Action> repeats_of(const State& state) const;
  std::vector<Action> actions_of(const State& state) const;
  State after(const State& state, const Action& action, Observed& seen) const;
  static Digest digest_of(const State& state);
  /// Whether it is new to the reference, and whether it is with what is inside the model.
  struct News {
    bool outside;
    bool inside;
  };
  News note(const State& state, const ModelUnderTest& model);
  bool has_all(const State& state) const;
  bool agrees(const State& before, const Action& action, const Observed& expected, ModelUnderTest& model);
  bool looks_right(const Action& action, const State& state, const ModelUnderTest& model);
  bool ends_well(Ending ending, const Action& action, const State& state, const ModelUnderTest& model);
  bool run(Ending ending, Reference reference, ModelUnderTest model);
  bool step(Reference& reference, ModelUnderTest& model, const Action& action);
  bool drain(Reference& reference, ModelUnderTest& model);
  bool send_probes(Reference& reference, ModelUnderTest& model);
  bool finish_epochs(Reference& reference, ModelUnderTest& model);
  void fail(const std::string& what, const Action* last, const std::string& difference);

  const Scenario& scenario_;
  std::vector<MessageSpec> messages_;  ///< the scenario's, then the probes
  NicConfig config_;
  boost::unordered_flat_set<Digest> visited_;        ///< of the reference
  boost::unordered_flat_set<Digest> inner_visited_;  ///< of reference and model
  std::vector<Action> path_;
  std::vector<Action> ending_;  ///< steps of the ending so far
  std::uint64_t most_states_ = 0;
  Findings findings_;
};

std::string describe(const Scenario& scenario);

}  // namespace rvma::check
