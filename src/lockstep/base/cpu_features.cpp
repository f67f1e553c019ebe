#include "lockstep/base/cpu_features.h"

#include <cpuid.h>

namespace lockstep::base {
namespace {

constexpr uint32_t kFeatureLeaf = 7;
constexpr uint32_t kTileLeaf = 0x1D;
// Bits of EDX of the feature leaf.
constexpr uint32_t kAmxBf16 = 1U << 22;
constexpr uint32_t kAmxTile = 1U << 24;
constexpr uint32_t kAmxInt8 = 1U << 25;

}  // namespace

CpuidRegisters ask_processor(uint32_t leaf, uint32_t subleaf) {
  CpuidRegisters registers;
  __get_cpuid_count(leaf, subleaf, &registers.eax, &registers.ebx,
                    &registers.ecx, &registers.edx);
  return registers;
}

bool announces_unusable_amx(const Cpuid& cpuid) {
  const uint32_t highest_leaf = cpuid(0, 0).eax;
  if (highest_leaf < kFeatureLeaf) return false;
  const uint32_t features = cpuid(kFeatureLeaf, 0).edx;
  if ((features & (kAmxBf16 | kAmxTile | kAmxInt8)) == 0) return false;
  if (highest_leaf < kTileLeaf) return true;
  const uint32_t highest_palette = cpuid(kTileLeaf, 0).eax;
  if (highest_palette == 0) return true;
  const uint32_t tile_bytes = cpuid(kTileLeaf, 1).eax & 0xFFFF;
  return tile_bytes == 0;
}

}  // namespace lockstep::base
