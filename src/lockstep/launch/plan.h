// A job, resolved and checked before anything starts.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/cpu_features.h"
#include "lockstep/base/environment.h"
#include "lockstep/launch/gpus.h"
#include "lockstep/launch/nodes_plan.h"
#include "lockstep/launch/numa.h"
#include "lockstep/launch/options.h"
#include "lockstep/launch/program.h"

namespace lockstep::launch {

struct Plan {
  RunOptions options;
  ProgramCommand command;
  int num_processes = 1;
  VisibleGpus gpus;
  bool is_for_cpus = false;          // the user asked for CPUs
  std::vector<CpuList> worker_cpus;  // by local rank; empty: all that are free
  NodesPlan nodes;
  std::string master_addr;         // of the store that this node hosts
  std::optional<int> master_port;  // no value: a free one
  std::string run_id;
  std::string job;                 // Unlike run_id, never that of another job.
  double timeout_seconds = 0;      // of collectives, as the workers see it
  base::Environment environment;   // the same for all workers
  std::vector<std::string> notes;  // lines for the user
  // `lockstep train` and its like: the worker itself reports what is wrong with
  // its input, and unblocks SIGUSR1 when it is ready for it.
  bool runs_own_worker = false;
  // A rank that is killed is replaced while the others keep their state.
  bool recovers_in_memory = false;
  int num_spares = 0;  // processes of this node that wait to replace one
};

// What this machine offers; tests pass their own.
struct Machine {
  std::function<int()> count_gpus;
  std::function<int()> count_cores;
  base::Cpuid cpuid = {};  // Empty: a processor without surprises.
  std::function<bool(const std::string& uuid)> knows_gpu = {};
  // The rest serves --numa-binding.
  std::function<std::vector<std::string>(const VisibleGpus&)> find_bus_ids = {};
  std::function<CpuList()> find_allowed_cpus = {};
  std::filesystem::path sysfs = "/sys";
};

// GPUs by count_installed_gpus() and NVML, cores by the scheduling affinity.
Machine this_machine();

// Throws ConfigError when the options do not fit the machine, ProgramError when
// the program cannot be started.
Plan make_plan(const RunOptions& options, const base::Environment& environment,
               const Machine& machine);

}  // namespace lockstep::launch
