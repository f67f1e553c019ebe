#include "lockstep/base/library_settings.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace lockstep {
namespace {

base::CpuidRegisters without_amx(uint32_t leaf, uint32_t) {
  return leaf == 0 ? base::CpuidRegisters{.eax = 0x20} : base::CpuidRegisters{};
}

// Announces AMX and ends before the leaf that describes tiles.
base::CpuidRegisters with_unusable_amx(uint32_t leaf, uint32_t) {
  if (leaf == 0) return {.eax = 0x1C};
  return {.edx = leaf == 7 ? uint32_t{1} << 24 : 0};
}

base::Environment settings_for(const base::Environment& environment,
                               const base::Cpuid& cpuid) {
  base::Environment result;
  for (const base::LibrarySetting& setting :
       base::library_settings(environment, cpuid)) {
    result[setting.name] = setting.value;
  }
  return result;
}

TEST(LibrarySettings, LetThreadsWaitWithoutSpinning) {
  const base::Environment expected = {{"OMP_WAIT_POLICY", "PASSIVE"}};
  EXPECT_EQ(settings_for({}, without_amx), expected);
}

TEST(LibrarySettings, KeepOnednnOffUnusableAmx) {
  const auto settings = base::library_settings({}, with_unusable_amx);
  ASSERT_EQ(settings.size(), 2U);
  EXPECT_EQ(settings[1].name, "ONEDNN_MAX_CPU_ISA");
  EXPECT_EQ(settings[1].value, "AVX512_CORE_FP16");
  EXPECT_TRUE(settings[1].note.starts_with(
      "ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16: this processor announces AMX"));
}

TEST(LibrarySettings, LeaveTheUsersChoice) {
  for (const char* omp : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) {
    for (const char* onednn : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
      const base::Environment chosen = {{omp, "x"}, {onednn, "DEFAULT"}};
      EXPECT_TRUE(base::library_settings(chosen, with_unusable_amx).empty())
          << omp << " " << onednn;
    }
  }
}

TEST(LibrarySettings, AreSetForThisProcessOnce) {
  unsetenv("OMP_WAIT_POLICY");
  unsetenv("GOMP_SPINCOUNT");
  base::apply_library_settings();
  EXPECT_STREQ(getenv("OMP_WAIT_POLICY"), "PASSIVE");
  EXPECT_TRUE(base::apply_library_settings().empty());
}

}  // namespace
}  // namespace lockstep
