#include "lockstep/tensor/philox.h"

#include <gtest/gtest.h>

#include <array>

namespace lockstep {
namespace {

std::array<uint32_t, 4> words(const tensor::PhiloxBlock& block) {
  return {block.words[0], block.words[1], block.words[2], block.words[3]};
}

TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(words(tensor::philox4x32_10({{0, 0, 0, 0}}, {{0, 0}})),
            (std::array{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  constexpr uint32_t kOnes = 0xffffffffu;
  EXPECT_EQ(words(tensor::philox4x32_10({{kOnes, kOnes, kOnes, kOnes}},
                                        {{kOnes, kOnes}})),
            (std::array{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(words(tensor::philox4x32_10(
                {{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}},
                {{0xa4093822u, 0x299f31d0u}})),
            (std::array{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(Philox, SeedIsTheKeyAndBlockThenStreamAreTheCounter) {
  constexpr tensor::PhiloxBlock kByName = tensor::philox_block(
      0x299f31d0a4093822ULL, 0x0370734413198a2eULL, 0x85a308d3243f6a88ULL);
  static_assert(kByName.words[0] == 0xd16cfe09u);
  EXPECT_EQ(words(kByName),
            (std::array{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

}  // namespace
}  // namespace lockstep
