#include "lockstep/parallel/bucket_layout.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

TEST(BucketLayout, EveryParameterMustBeInOneBucket) {
  EXPECT_NO_THROW(parallel::check_layout({{2, 1}, {0}}, 3));
  EXPECT_THROW(parallel::check_layout({{2, 1}}, 3), ConfigError);
  EXPECT_THROW(parallel::check_layout({{2, 1}, {0, 1}}, 3), ConfigError);
  EXPECT_THROW(parallel::check_layout({{2, 1}, {0, 3}}, 3), ConfigError);
}

}  // namespace
}  // namespace lockstep
