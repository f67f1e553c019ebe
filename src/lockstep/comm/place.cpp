#include "lockstep/comm/place.h"

#include <fmt/format.h>

#include <limits>

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
  for (uint64_t i = 0; i < kNumTries; ++i) {
    ports.push_back(static_cast<int>(kFirst + (hash + i * kStride) % kCount));
  }
  return ports;
}

void refuse_several_machines(const base::TaskPlace& task) {
  if (task.not_one_machine.empty()) return;
  throw ConfigError(fmt::format(
      "{} started {} tasks ({}={}), and not all on one machine ({}): several "
      "machines are not supported yet; start all tasks on one, or one task "
      "that runs 'lockstep run --nproc-per-node N PROGRAM'",
      task.launcher, task.size, task.size_variable, task.size,
      task.not_one_machine));
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

Place place_of_task(const base::Environment& environment,
                    const base::TaskPlace& task) {
  refuse_several_machines(task);
  check_world_size(environment, task);
  Place place;
  place.rank = task.rank;
  place.world_size = task.size;
  place.local_world_size = task.size;
  place.local_rank = sees_one_gpu(environment) ? 0 : task.local_rank;
  const std::string job =
      task.job.empty() ? base::name_task_parent(task.rank_variable) : task.job;
  place.store_secret = "job of " + task.launcher + ": " + job;
  place.store_ports = job_ports(*place.store_secret);
  // A job script may have chosen both.
  if (const auto address = base::find(environment, "MASTER_ADDR")) {
    place.master_addr = *address;
  }
  if (base::find(environment, "MASTER_PORT")) {
    place.store_ports = {in_range(environment, "MASTER_PORT", 1, 65535, 0)};
  }
  place.master_port = place.store_ports.front();
  return place;
}

}  // namespace

std::string store_host(const Place& place) {
  return place.launcher_hosts_store ? "the launcher" : "rank 0";
}

Place place_from_environment(const base::Environment& environment) {
  Place place;
  if (!base::find(environment, "RANK")) {
    if (const auto task = base::find_task_place(environment)) {
      return place_of_task(environment, *task);
    }
  }
  const bool launched =
      base::find(environment, "RANK") || base::find(environment, "WORLD_SIZE");
  if (!launched) return place;
  require_set(environment, "RANK");
  require_set(environment, "WORLD_SIZE");
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  place.world_size = in_range(environment, "WORLD_SIZE", 1, kMost, 1);
  place.rank =
      in_range(environment, "RANK", 0, place.world_size - int64_t{1}, 0);
  place.local_world_size = in_range(environment, "LOCAL_WORLD_SIZE", 1,
                                    place.world_size, place.world_size);
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

}  // namespace lockstep::comm
