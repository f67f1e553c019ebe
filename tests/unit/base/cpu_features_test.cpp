#include "lockstep/base/cpu_features.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace lockstep {
namespace {

using Leaves = std::map<std::pair<uint32_t, uint32_t>, base::CpuidRegisters>;

base::Cpuid answering(Leaves leaves) {
  return [leaves = std::move(leaves)](uint32_t leaf, uint32_t subleaf) {
    const auto entry = leaves.find({leaf, subleaf});
    return entry == leaves.end() ? base::CpuidRegisters{} : entry->second;
  };
}

constexpr uint32_t kAmxBits = 1U << 22 | 1U << 24 | 1U << 25;

// A Xeon with AMX: palette 1 has 8192 bytes in 8 tiles of 1024 bytes.
Leaves leaves_of_sapphire_rapids() {
  return {{{0, 0}, {.eax = 0x20}},
          {{7, 0}, {.eax = 2, .edx = 0xffdd4432 | kAmxBits}},
          {{0x1D, 0}, {.eax = 1}},
          {{0x1D, 1}, {.eax = 0x04002000, .ebx = 0x00080040, .ecx = 16}}};
}

TEST(UnusableAmx, IsNotFoundWhereTilesAreDescribed) {
  EXPECT_FALSE(
      base::announces_unusable_amx(answering(leaves_of_sapphire_rapids())));
}

TEST(UnusableAmx, IsFoundWhereTheLeavesEndBeforeTheTiles) {
  Leaves leaves = leaves_of_sapphire_rapids();
  leaves[{0, 0}].eax = 0x1C;
  EXPECT_TRUE(base::announces_unusable_amx(answering(leaves)));
}

TEST(UnusableAmx, IsFoundWhereThereIsNoPalette) {
  Leaves leaves = leaves_of_sapphire_rapids();
  leaves[{0x1D, 0}].eax = 0;
  EXPECT_TRUE(base::announces_unusable_amx(answering(leaves)));
}

TEST(UnusableAmx, IsFoundWhereThePaletteIsEmpty) {
  Leaves leaves = leaves_of_sapphire_rapids();
  leaves.erase({0x1D, 1});
  EXPECT_TRUE(base::announces_unusable_amx(answering(leaves)));
}

TEST(UnusableAmx, OneOfItsBitsIsEnough) {
  for (const int bit : {22, 24, 25}) {
    const Leaves leaves = {{{0, 0}, {.eax = 0x1C}},
                           {{7, 0}, {.edx = uint32_t{1} << bit}}};
    EXPECT_TRUE(base::announces_unusable_amx(answering(leaves))) << bit;
  }
}

TEST(UnusableAmx, IsNotFoundOnProcessorsWithoutAmx) {
  const Leaves epyc = {{{0, 0}, {.eax = 0x1C}}, {{7, 0}, {.edx = 0x10}}};
  EXPECT_FALSE(base::announces_unusable_amx(answering(epyc)));
  // Without leaf 7 a processor answers with the data of another leaf.
  const Leaves old = {{{0, 0}, {.eax = 2}}, {{7, 0}, {.edx = kAmxBits}}};
  EXPECT_FALSE(base::announces_unusable_amx(answering(old)));
}

TEST(AskProcessor, TellsTheNumberOfLeaves) {
  EXPECT_GE(base::ask_processor(0, 0).eax, 1U);
}

}  // namespace
}  // namespace lockstep
