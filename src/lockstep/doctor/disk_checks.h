// The folder that a run writes to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "lockstep/doctor/finding.h"

namespace lockstep::doctor {

struct DiskDemand {
  std::filesystem::path folder = ".";  // --save_dir; it need not exist yet.
  int64_t checkpoint_bytes = 0;        // 0: not known.
  int64_t num_checkpoints = 1;         // That are kept at once.
};

// Whether it can be written, and how much and how fast: by a file without a
// name, which is gone when the check is. Lines "save_dir" and "disk"; the
// second one only where the first is ok.
std::vector<Finding> check_disk(const DiskDemand& demand);

}  // namespace lockstep::doctor
