/// \file
/// A scoreboard that is told a run as an RNIC would tell it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fake_nic.hpp"
#include "report/scoreboard.hpp"

namespace rvma::test {

class ScoreboardTest : public testing::Test {
 protected:
  ScoreboardTest() { build(true); }

  void build(bool with_bytes) {
    nic_.reset();
    scoreboard_.reset();
    registry_ = std::make_unique<PutRegistry>();
    scoreboard_ = std::make_unique<Scoreboard>(
        *registry_,
        Scoreboard::Host{
            [this](NodeId node, Pid pid, VirtualAddress from, std::uint64_t bytes, std::vector<std::uint8_t>& to) {
              EXPECT_EQ(node, kReceiver);
              EXPECT_EQ(pid, kPid);
              nic().host().read(from, bytes, to);
            },
            [this](NodeId, PhysicalAddress word) { return nic().host().word(word); },
            [this](Time when) { asked_for_.push_back(when); }},
        kMtu, with_bytes);
    nic_ = std::make_unique<FakeNic>(*registry_, std::vector<NicObserver*>{scoreboard_.get()},
                                     std::vector<PlayerObserver*>{scoreboard_.get()});
  }
  FakeNic& nic() { return *nic_; }
  Scoreboard& scoreboard() { return *scoreboard_; }
  void settle() {
    nic().wait(FakeNic::kVisible);
    scoreboard().settle(nic().now());
  }
  void finish(bool drained = true) {
    nic().wait(FakeNic::kVisible);
    scoreboard().finish(nic().now(), nic().totals(), drained);
  }
  void expect_passed() {
    EXPECT_TRUE(scoreboard().passed());
    for (const std::string& failure : scoreboard().failures()) ADD_FAILURE() << failure;
  }
  /// One failure, and this one.
  void expect_only(const std::string& text) {
    EXPECT_FALSE(scoreboard().passed());
    EXPECT_EQ(scoreboard().failure_count(), 1U);
    ASSERT_FALSE(scoreboard().failures().empty());
    for (const std::string& failure : scoreboard().failures()) EXPECT_THAT(failure, testing::HasSubstr(text));
  }
  /// A window of threshold 2 KiB with one buffer of 4 KiB.
  Buffer open(Placement placement = Placement::steered) {
    nic().open_window(2048, placement);
    return nic().post(4096);
  }

  std::unique_ptr<PutRegistry> registry_;
  std::unique_ptr<Scoreboard> scoreboard_;
  std::unique_ptr<FakeNic> nic_;
  std::vector<Time> asked_for_;
};

}  // namespace rvma::test
