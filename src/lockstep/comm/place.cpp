#include "lockstep/comm/place.h"

#include <fmt/format.h>

#include <limits>

#include "lockstep/base/host_list.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/task_place.h"
#include "lockstep/error.h"
#include "lockstep/net/job_secret.h"

namespace lockstep::comm {
namespace {

constexpr const char* kHowToStart =
    "start the program with 'lockstep run --nproc-per-node N PROGRAM', or set "
    "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for every process";

int in_range(const base::Environment& environment, const char* name,
             int64_t low, int64_t high, int64_t fallback) {
  const int64_t value =
      base::find_integer(environment, name).value_or(fallback);
  if (value < low || value > high) {
    throw ConfigError(
        fmt::format("environment variable {}={} is out of range: "
                    "it must be from {} to {}",
                    name, value, low, high));
  }
  return static_cast<int>(value);
}

void require_set(const base::Environment& environment, const char* name) {
  if (base::find(environment, name)) return;
  throw ConfigError(fmt::format(
      "environment variable {} is not set although RANK or WORLD_SIZE is: {}",
      name, kHowToStart));
}

// Ports of a job that `lockstep run` did not start, in the order in which they
// are tried: its name, hashed (FNV-1a) into a range below the ports that the
// system gives to outgoing connections.
std::vector<int> job_ports(const std::string& job) {
  constexpr uint64_t kFirst = 10000;
  constexpr uint64_t kCount = 22000;
  constexpr uint64_t kStride = 7919;
  constexpr uint64_t kNumTries = 16;
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : job) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  std::vector<int> ports;
  ports.reserve(kNumTries);
  for (uint64_t i = 0; i < kNumTries; ++i) {
    ports.push_back(static_cast<int>(kFirst + (hash + i * kStride) % kCount));
  }
  return ports;
}

void check_world_size(const base::Environment& environment,
                      const base::TaskPlace& task) {
  const auto size = base::find_integer(environment, "WORLD_SIZE");
  if (!size || *size == task.size) return;
  throw ConfigError(fmt::format(
      "WORLD_SIZE={} contradicts {}={}; unset WORLD_SIZE, or set RANK for "
      "every process too",
      *size, task.size_variable, task.size));
}

// A scheduler that gives every task its own GPU shows it that one alone.
bool sees_one_gpu(const base::Environment& environment) {
  const auto gpus = base::find(environment, "CUDA_VISIBLE_DEVICES");
  return gpus && *gpus != "-1" && base::split(*gpus, ',').size() == 1;
}

[[noreturn]] void refuse_without_master(const base::TaskPlace& task) {
  throw ConfigError(fmt::format(
      "{} started {} tasks ({}={}), and not all on one machine ({}): set "
      "MASTER_ADDR to the machine of rank 0 and MASTER_PORT to a free port "
      "there, for all tasks ('mpirun -x MASTER_ADDR -x MASTER_PORT', 'mpiexec "
      "-genv MASTER_ADDR HOST -genv MASTER_PORT 29500')",
      task.launcher, task.size, task.size_variable, task.size,
      task.not_one_machine));
}

// Tasks on several machines meet where the variables say, else on the first
// machine of Slurm's list.
void set_master(const base::Environment& environment,
                const base::TaskPlace& task, Place& place) {
  const auto address = base::find(environment, "MASTER_ADDR");
  const bool has_port = base::find(environment, "MASTER_PORT").has_value();
  const bool is_spread = !task.not_one_machine.empty();
  const bool is_named = !task.job.empty() && !task.hosts.empty();
  if (is_spread && !(address && has_port) && !is_named) {
    refuse_without_master(task);
  }
  if (address) {
    place.master_addr = *address;
  } else if (is_spread) {
    place.master_addr = base::expand_host_list(task.hosts).front();
  }
  if (has_port) {
    place.store_ports = {in_range(environment, "MASTER_PORT", 1, 65535, 0)};
  }
  place.master_port = place.store_ports.front();
}

// LOCAL_RANK and LOCAL_WORLD_SIZE say what a launcher does not.
void set_local_place(const base::Environment& environment,
                     const base::TaskPlace& task, Place& place) {
  int64_t local_size = task.local_size;
  if (local_size == 0) {
    for (const char* name : {"LOCAL_RANK", "LOCAL_WORLD_SIZE"}) {
      if (base::find(environment, name)) continue;
      throw ConfigError(fmt::format(
          "{} started {} tasks, and no variable shows which of them are on one "
          "machine ({}): set {} for every task",
          task.launcher, task.size, task.not_one_machine, name));
    }
    local_size = in_range(environment, "LOCAL_WORLD_SIZE", 1, task.size, 1);
  }
  place.local_world_size = static_cast<int>(local_size);
  place.local_rank = task.local_rank;
  if (task.local_size == 0) {
    place.local_rank =
        in_range(environment, "LOCAL_RANK", 0, local_size - 1, 0);
  }
  if (sees_one_gpu(environment)) place.local_rank = 0;
}

Place place_of_task(const base::Environment& environment,
                    const base::TaskPlace& task) {
  check_world_size(environment, task);
  Place place;
  place.rank = task.rank;
  place.world_size = task.size;
  const bool is_spread = !task.not_one_machine.empty();
  if (!task.job.empty() || !is_spread) {
    const std::string job = task.job.empty()
                                ? base::name_task_parent(task.rank_variable)
                                : task.job;
    place.store_secret = "job of " + task.launcher + ": " + job;
    place.store_ports = job_ports(*place.store_secret);
  }
  set_master(environment, task, place);
  set_local_place(environment, task, place);
  return place;
}

bool is_loopback_name(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// One process per pod: PyTorchJob sets RANK and WORLD_SIZE, an indexed Job
// JOB_COMPLETION_INDEX, and neither sets local ones.
bool is_pod_of_many(const base::Environment& environment) {
  const auto master = base::find(environment, "MASTER_ADDR");
  return base::find(environment, "KUBERNETES_SERVICE_HOST") &&
         !base::find(environment, "LOCAL_RANK") &&
         !base::find(environment, "LOCAL_WORLD_SIZE") && master &&
         !is_loopback_name(*master);
}

// RANK is that of the pod then, and WORLD_SIZE that of all its processes.
void refuse_several_per_pod(const base::Environment& environment) {
  const auto count = base::find(environment, "PET_NPROC_PER_NODE");
  if (!count || base::parse_integer(*count).value_or(1) <= 1) return;
  throw ConfigError(fmt::format(
      "this pod shall run {} processes (PET_NPROC_PER_NODE, nprocPerNode of a "
      "PyTorchJob), but one was started: use 'lockstep run PROGRAM', which "
      "starts them, as the command of the container",
      *count));
}

// RANK from the index of an indexed Job, where the manifest sets WORLD_SIZE.
base::Environment with_rank_of_pod(base::Environment environment) {
  const auto index = base::find(environment, "JOB_COMPLETION_INDEX");
  if (!index || base::find(environment, "RANK")) return environment;
  if (!base::find(environment, "WORLD_SIZE")) {
    if (!base::find(environment, "MASTER_ADDR")) return environment;
    throw ConfigError(
        "environment variable WORLD_SIZE is not set although "
        "JOB_COMPLETION_INDEX and MASTER_ADDR are: set it in the manifest of "
        "the Job, to the value of 'completions'");
  }
  environment["RANK"] = *index;
  return environment;
}

Place place_of_torchrun(const base::Environment& environment) {
  Place place;
  require_set(environment, "RANK");
  require_set(environment, "WORLD_SIZE");
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  place.world_size = in_range(environment, "WORLD_SIZE", 1, kMost, 1);
  place.rank =
      in_range(environment, "RANK", 0, place.world_size - int64_t{1}, 0);
  place.name_comes_later = is_pod_of_many(environment);
  if (place.name_comes_later) refuse_several_per_pod(environment);
  place.local_world_size =
      in_range(environment, "LOCAL_WORLD_SIZE", 1, place.world_size,
               place.name_comes_later ? 1 : place.world_size);
  place.local_rank = in_range(environment, "LOCAL_RANK", 0,
                              place.local_world_size - int64_t{1},
                              place.rank % place.local_world_size);
  place.attempt =
      in_range(environment, "TORCHELASTIC_RESTART_COUNT", 0, kMost, 0);
  place.launcher_hosts_store =
      base::find(environment, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (place.world_size == 1) return place;
  require_set(environment, "MASTER_ADDR");
  require_set(environment, "MASTER_PORT");
  place.master_addr = *base::find(environment, "MASTER_ADDR");
  place.master_port = in_range(environment, "MASTER_PORT", 1, 65535, 0);
  if (place.launcher_hosts_store) {
    place.store_secret = net::find_job_secret(environment, place.master_port);
  }
  return place;
}

}  // namespace

std::string store_host(const Place& place) {
  return place.launcher_hosts_store ? "the launcher" : "rank 0";
}

Place place_from_environment(const base::Environment& given) {
  const base::Environment environment = with_rank_of_pod(given);
  if (!base::find(environment, "RANK")) {
    if (const auto task = base::find_task_place(environment)) {
      return place_of_task(environment, *task);
    }
    if (!base::find(environment, "WORLD_SIZE")) return {};
  }
  return place_of_torchrun(environment);
}

}  // namespace lockstep::comm
