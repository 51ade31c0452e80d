// Joins puts, their words and their messages.
#include "report/put_registry.hpp"

#include <gtest/gtest.h>

namespace rvma {
namespace {

PutIssue issue_of(std::uint32_t node, std::uint64_t word, const NameRef* name = nullptr) {
  PutIssue put;
  put.rank = RankId{node};
  put.node = NodeId{node};
  put.name = name;
  put.destination_node = NodeId{9};
  put.word = PhysicalAddress{word};
  put.size = 77;
  put.at = Time::from_ns(5);
  return put;
}
MessageRef message(std::uint32_t source, std::uint32_t id, std::uint32_t generation = 1) {
  return MessageRef{NodeId{source}, 1, generation, MessageId{id}};
}

TEST(PutRegistry, FindsAPutByWordAndByMessage) {
  PutRegistry registry;
  const NameRef name{3, {1, 2}};
  registry.issue(issue_of(0, 16, &name));
  registry.issue(issue_of(1, 16));
  ASSERT_NE(registry.find(NodeId{0}, PhysicalAddress{16}), nullptr);
  const PutRecord& record = *registry.find(NodeId{0}, PhysicalAddress{16});
  EXPECT_TRUE(record.has_name);
  EXPECT_EQ(record.name, name);
  EXPECT_EQ(record.size, 77U);
  EXPECT_EQ(record.issued, Time::from_ns(5));
  EXPECT_EQ(record.number, 0U);
  EXPECT_FALSE(registry.find(NodeId{1}, PhysicalAddress{16})->has_name);
  EXPECT_EQ(registry.find(NodeId{0}, PhysicalAddress{32}), nullptr);

  registry.message_opened(NodeId{0}, PhysicalAddress{16}, NodeId{9}, message(0, 4), Time{});
  EXPECT_EQ(registry.find(NodeId{9}, message(0, 4)), &record);
  EXPECT_EQ(registry.find(NodeId{8}, message(0, 4)), nullptr);
  EXPECT_EQ(registry.find(NodeId{9}, message(0, 5)), nullptr);
  EXPECT_EQ(registry.find(NodeId{9}, message(1, 4)), nullptr);
  EXPECT_EQ(registry.find(NodeId{9}, message(0, 4, 2)), nullptr);
  EXPECT_EQ(record.tries, 1U);

  // A retry is a new message; the old one is nobody's.
  registry.message_opened(NodeId{0}, PhysicalAddress{16}, NodeId{9}, message(0, 6), Time{});
  EXPECT_EQ(registry.find(NodeId{9}, message(0, 4)), nullptr);
  EXPECT_EQ(registry.find(NodeId{9}, message(0, 6)), &record);
  EXPECT_EQ(record.tries, 2U);
}

TEST(PutRegistry, ARecordOutlivesItsEndUntilTheNextEvent) {
  PutRegistry registry;
  registry.issue(issue_of(0, 16));
  registry.issue(issue_of(0, 32));
  registry.message_opened(NodeId{0}, PhysicalAddress{16}, NodeId{9}, message(0, 0), Time{});
  EXPECT_EQ(registry.open().size(), 2U);
  registry.put_ended(NodeId{0}, PhysicalAddress{16}, Outcome::ok, 1, Time{});
  EXPECT_NE(registry.find(NodeId{0}, PhysicalAddress{16}), nullptr);
  ASSERT_EQ(registry.open().size(), 1U);
  EXPECT_EQ(registry.open()[0]->number, 1U);
  registry.put_ended(NodeId{0}, PhysicalAddress{32}, Outcome::ok, 1, Time{});
  EXPECT_EQ(registry.find(NodeId{0}, PhysicalAddress{16}), nullptr);
  EXPECT_EQ(registry.find(NodeId{9}, message(0, 0)), nullptr);
  EXPECT_TRUE(registry.open().empty());
  // Its word may be used again, and starts clean.
  registry.issue(issue_of(0, 16));
  EXPECT_EQ(registry.find(NodeId{0}, PhysicalAddress{16})->tries, 0U);
  EXPECT_EQ(registry.find(NodeId{0}, PhysicalAddress{16})->number, 2U);
  EXPECT_EQ(registry.issued(), 3U);
}

TEST(PutRegistry, AMessageInDoubtIsRemembered) {
  PutRegistry registry;
  registry.issue(issue_of(0, 16));
  registry.message_opened(NodeId{0}, PhysicalAddress{16}, NodeId{9}, message(0, 0), Time{});
  registry.put_ended(NodeId{0}, PhysicalAddress{16}, Outcome::timeout, 1, Time{});
  registry.issue(issue_of(0, 16));
  registry.message_opened(NodeId{0}, PhysicalAddress{16}, NodeId{9}, message(0, 0, 2), Time{});
  ASSERT_NE(registry.find(NodeId{9}, message(0, 0)), nullptr);
  EXPECT_EQ(registry.find(NodeId{9}, message(0, 0))->number, 0U);
  EXPECT_EQ(registry.find(NodeId{9}, message(0, 0, 2))->number, 1U);
  EXPECT_EQ(registry.find(NodeId{0}, PhysicalAddress{16})->number, 1U);
  EXPECT_EQ(registry.open().size(), 1U);
}

TEST(PutRegistryDeathTest, TwoOpenPutsCannotShareAWord) {
  PutRegistry registry;
  registry.issue(issue_of(0, 16));
  EXPECT_EXIT(registry.issue(issue_of(0, 16)), testing::ExitedWithCode(3), "share a completion word");
}

}  // namespace
}  // namespace rvma
