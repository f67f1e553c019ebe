// Checks by real processes: copies between GPUs, the exchange of tensors, and a
// recipe's data, memory, batch and speed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/doctor/finding.h"
#include "lockstep/doctor/recipe_findings.h"

namespace lockstep::doctor {

// How measuring processes are started.
struct ProbeCommand {
  std::string launcher;  // This program.
  std::string worker;
  base::Environment environment;  // In which the worker finds torch.
  double limit_seconds = 120;
};

// A copy that does not end is the known trouble of peer-to-peer access behind
// an IOMMU. With LOCKSTEP_DOCTOR_STALL=copies one is made to hang, and with
// LOCKSTEP_DOCTOR_STALL=wrong to change its data, to show it where there is a
// single GPU or none.
Finding check_gpu_copies(const ProbeCommand& probe, int num_gpus);

struct ExchangeJob {
  int num_processes = 2;
  int num_gpus = 0;  // Visible ones.
};
// One line per way to exchange: NCCL where there are GPUs, shared memory, Gloo.
std::vector<Finding> check_exchange(const ProbeCommand& probe,
                                    const ExchangeJob& job);

struct RecipeJob {
  std::vector<std::string> arguments;  // RECIPE and its flags.
  int num_processes = 1;
  bool shares_gpus = false;
  // Processes that want a CPU besides, by the load average; and CPUs.
  double load = 0;
  double cpus = 1;
};

struct RecipeFindings {
  std::vector<Finding> findings = {};
  // What later checks need; no value where the measurement failed.
  std::optional<RecipeMeasurement> measured = {};
};

RecipeFindings check_recipe(const ProbeCommand& probe, const RecipeJob& job);

}  // namespace lockstep::doctor
