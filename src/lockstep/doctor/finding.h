// What one check of `lockstep doctor` found.
#pragma once

#include <span>
#include <string>

namespace lockstep::doctor {

enum class Level { kOk, kWarning, kFailure };

// What a failure concerns; each has an exit code (docs/how-to/doctor.md).
enum class Class {
  kSettings,  // flags, variables, port, host name: code 2
  kFiles,     // data, save_dir, disk: code 3
  kExchange,  // ranks cannot exchange tensors: code 5
  kHang,      // a measurement did not end in time: code 6
  kDevice,    // GPUs, driver, their memory: code 7
  kLimits,    // limits of the machine or its container: code 9
};

int exit_code_of(Class kind);

struct Finding {
  std::string check;  // "shared memory"
  Level level = Level::kOk;
  std::string text = {};
  std::string mend = {};  // The next command; empty when all is well.
  Class kind = Class::kSettings;
};

// "warning  shared memory   /dev/shm has 64.0 MiB ...; mend: docker run ..."
std::string finding_line(const Finding& finding);

// The code of the first failure; 0 without one: warnings do not count.
int exit_code_of(std::span<const Finding> findings);

std::string findings_json(std::span<const Finding> findings);

// "9 checks: 7 ok, 1 warning, 1 failure"
std::string summary_text(std::span<const Finding> findings);

}  // namespace lockstep::doctor
