#include "lockstep/base/library_settings.h"

#include <cstdlib>
#include <initializer_list>

namespace lockstep::base {
namespace {

bool is_any_set(const Environment& environment,
                std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (find(environment, name)) return true;
  }
  return false;
}

}  // namespace

std::vector<LibrarySetting> library_settings(const Environment& environment,
                                             const Cpuid& cpuid) {
  std::vector<LibrarySetting> settings;
  if (!is_any_set(environment,
                  {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"})) {
    settings.push_back(
        {.name = "OMP_WAIT_POLICY", .value = "PASSIVE", .note = ""});
  }
  if (!is_any_set(environment, {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) &&
      cpuid && announces_unusable_amx(cpuid)) {
    settings.push_back(
        {.name = "ONEDNN_MAX_CPU_ISA",
         .value = "AVX512_CORE_FP16",
         .note = "ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16: this processor "
                 "announces AMX but does not describe its tiles, so bf16 would "
                 "crash; set the variable yourself to change it"});
  }
  return settings;
}

std::vector<std::string> apply_library_settings() {
  std::vector<std::string> notes;
  for (const LibrarySetting& setting :
       library_settings(process_environment(), ask_processor)) {
    setenv(setting.name.c_str(), setting.value.c_str(), /*replace=*/1);
    if (!setting.note.empty()) notes.push_back(setting.note);
  }
  return notes;
}

}  // namespace lockstep::base
