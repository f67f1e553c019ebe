// Processor features that CPUID announces wrongly.
#pragma once

#include <cstdint>
#include <functional>

namespace lockstep::base {

struct CpuidRegisters {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
};

// The answer to one leaf and subleaf; tests pass their own.
using Cpuid = std::function<CpuidRegisters(uint32_t leaf, uint32_t subleaf)>;

// Asks the processor. All zero for a leaf that it does not have.
CpuidRegisters ask_processor(uint32_t leaf, uint32_t subleaf);

// True when AMX is announced and its tiles are not described: some virtual
// machines set the AMX bits of leaf 7 and hide leaf 0x1D.
bool announces_unusable_amx(const Cpuid& cpuid);

}  // namespace lockstep::base
