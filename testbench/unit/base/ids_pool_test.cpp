#include <gtest/gtest.h>

#include <type_traits>
#include <vector>

#include "base/ids.hpp"
#include "base/pool.hpp"
#include "base/slot_table.hpp"

namespace rvma {
namespace {

static_assert(!std::is_convertible_v<NodeId, RankId>);
static_assert(!std::is_convertible_v<std::uint32_t, NodeId>);

TEST(Ids, VectorTakesItsOwnIndex) {
  IdVector<NodeId, int> nodes(2);
  nodes[NodeId{1}] = 5;
  EXPECT_EQ(nodes.push_back(6), NodeId{2});
  EXPECT_EQ(nodes[NodeId{1}], 5);
  EXPECT_TRUE(nodes.contains(NodeId{2}));
  EXPECT_FALSE(nodes.contains(NodeId{3}));
}

struct Item {
  std::vector<int> values;
  void recycle() { values.clear(); }
};

TEST(Pool, RecyclesLastInFirstOut) {
  Pool<Item> pool;
  auto a = pool.acquire();
  auto b = pool.acquire();
  Item* const last = b.get();
  b->values.assign(100, 1);
  const int* const memory = b->values.data();
  EXPECT_EQ(pool.made(), 2U);
  EXPECT_EQ(pool.in_use(), 2U);
  a.reset();
  b.reset();
  EXPECT_EQ(pool.in_use(), 0U);
  auto again = pool.acquire();
  EXPECT_EQ(again.get(), last);
  EXPECT_TRUE(again->values.empty());
  EXPECT_GE(again->values.capacity(), 100U);
  EXPECT_EQ(again->values.data(), memory);
  EXPECT_EQ(pool.made(), 2U);
}

TEST(SlotTable, PlacesStayWhereTheyAreAndComeBackLastInFirstOut) {
  SlotTable<std::vector<int>> table;
  std::vector<const std::vector<int>*> places;
  for (std::uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(table.take(), i);
    table[i].assign(10, static_cast<int>(i));
    places.push_back(&table[i]);
  }
  EXPECT_EQ(table.made(), 100U);
  for (std::uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(&table[i], places[i]);
    EXPECT_EQ(table[i].front(), static_cast<int>(i));
  }
  table.give_back(40);
  table.give_back(7);
  EXPECT_EQ(table.taken(), 98U);
  EXPECT_EQ(table.take(), 7U);
  EXPECT_EQ(table[7].size(), 10U);  // what was in it is still there
  EXPECT_EQ(table.take(), 40U);
  EXPECT_EQ(table.take(), 100U);
}

}  // namespace
}  // namespace rvma
