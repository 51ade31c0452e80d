// The load targets at 64 K slots.
#include <gtest/gtest.h>

#include "table_load.hpp"

namespace rvma {
namespace {

TEST(SlowTableLoad, Reaches95PercentOf64K) { expect_load(8192); }
TEST(SlowTableLoad, ChurnAt90PercentOf64KIsNeverRefused) { expect_churn(8192, 2, 5); }

}  // namespace
}  // namespace rvma
