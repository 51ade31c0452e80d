#include <gtest/gtest.h>

#include <type_traits>
#include <vector>

#include "base/ids.hpp"
#include "base/pool.hpp"

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

}  // namespace
}  // namespace rvma
