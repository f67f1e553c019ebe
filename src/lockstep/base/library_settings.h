// Environment variables that libraries below libtorch read, with the values
// that this machine needs. Variables that the user has set stay as they are.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/cpu_features.h"
#include "lockstep/base/environment.h"

namespace lockstep::base {

struct LibrarySetting {
  std::string name;
  std::string value;
  std::string note;  // One line for the user; empty: nothing to explain.
};

// - OMP_WAIT_POLICY=PASSIVE: by default the threads of libgomp spin at the end
//   of every parallel region. On a busy machine they take the processor from
//   the thread they wait for, and a step becomes many times slower.
// - ONEDNN_MAX_CPU_ISA below AMX where announces_unusable_amx(): oneDNN would
//   fail with "could not create a primitive" or SIGILL in bf16.
std::vector<LibrarySetting> library_settings(const Environment& environment,
                                             const Cpuid& cpuid);

// Sets them for this process and its children. oneDNN reads its variable at the
// first operation, libgomp when it is loaded: the latter helps children only.
// Call it while one thread runs. Returns the notes.
std::vector<std::string> apply_library_settings();

}  // namespace lockstep::base
