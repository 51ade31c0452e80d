/// \file
/// Walks through every state that a scenario can reach, the reference and the model side by side.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "model_under_test.hpp"
#include "reference.hpp"
#include "scenario.hpp"

namespace rvma::check {

struct Findings {
  std::uint64_t states = 0;       ///< different ones
  std::uint64_t transitions = 0;  ///< steps compared, one for each action that a state allows
  bool cut_short = false;         ///< there are more
  std::string failure;            ///< empty: none; else the steps that lead to it, and what differs
};

/// Depth first. A state is the reference's, and whether one of the events may still happen; states that are equal are
/// gone on from once. Any packet that has arrived may come again at any point, as often as it likes. The model cannot
/// be copied, so each transition drives a new one along the whole path. Behind the transition, merged or not, the model
/// is held against the reference in a fixed ending (see Ending), which tells whether the two would ever differ that
/// way: so a model that came to an equal state with something else inside is found as well.
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
  enum class Ending : std::uint8_t { drain, probe };

  void visit(const State& state);
  std::vector<Action> actions_of(const State& state) const;
  State after(const State& state, const Action& action, Observed& seen) const;
  bool is_new(const State& state);
  bool agrees(const State& before, const Action& action, const State& next, const Observed& expected);
  bool ends_well(Reference reference, ModelUnderTest& model, Ending ending);
  bool step(Reference& reference, ModelUnderTest& model, const Action& action);
  bool drain(Reference& reference, ModelUnderTest& model);
  bool send_probes(Reference& reference, ModelUnderTest& model);
  bool finish_epochs(Reference& reference, ModelUnderTest& model);
  void replay(ModelUnderTest& model) const;
  void fail(const std::string& what, const Action* last, const std::string& difference);

  const Scenario& scenario_;
  std::vector<MessageSpec> messages_;  ///< the scenario's, then the probes
  NicConfig config_;
  /// 128 bits of each state visited; two states with the same are 10^-24 likely among ten million.
  struct Digest {
    std::uint64_t low;
    std::uint64_t high;
    bool operator==(const Digest& other) const { return low == other.low && high == other.high; }
  };
  struct TakeLow {
    std::size_t operator()(const Digest& digest) const { return digest.low; }
  };
  std::unordered_set<Digest, TakeLow> visited_;
  struct Step {
    Action action;
    Arrival arrival;
  };
  std::vector<Step> path_;
  std::vector<Action> ending_;  ///< steps of the ending so far
  std::uint64_t most_states_ = 0;
  Findings findings_;
};

std::string describe(const Scenario& scenario);

}  // namespace rvma::check
