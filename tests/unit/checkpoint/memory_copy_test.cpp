#include "lockstep/checkpoint/memory_copy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace lockstep {
namespace {

TEST(MemoryCopy, CopiesEveryByteAndNoOther) {
  std::mt19937 random(3);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4095}, size_t{4097},
                            size_t{2} << 20, (size_t{40} << 20) + 3}) {
    std::vector<uint8_t> from(size);
    for (uint8_t& byte : from) byte = static_cast<uint8_t>(random());
    for (const bool is_new : {false, true}) {
      std::vector<uint8_t> to(size + 2, 7);
      const size_t half = size / 2;
      checkpoint::copy_all(
          std::vector<checkpoint::MemoryCopy>{{.to = to.data() + 1,
                                               .from = from.data(),
                                               .num_bytes = half,
                                               .is_new = is_new},
                                              {.to = to.data() + 1 + half,
                                               .from = from.data() + half,
                                               .num_bytes = size - half,
                                               .is_new = is_new}});
      EXPECT_EQ(to.front(), 7);
      EXPECT_EQ(to.back(), 7);
      EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin() + 1));
    }
  }
}

}  // namespace
}  // namespace lockstep
