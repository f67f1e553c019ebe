#include "lockstep/launch/worker_environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/signals.h"
#include "lockstep/base/slot_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/terminal.h"
#include "lockstep/net/job_secret.h"

namespace lockstep::launch {
namespace {

// NCCL refuses two ranks on one GPU of one host; as "different hosts" they
// communicate over the loopback interface.
void share_gpu(base::Environment& environment, int rank, int num_nodes) {
  environment["NCCL_HOSTID"] =
      "lockstep-" + std::to_string(getpid()) + "-" + std::to_string(rank);
  if (num_nodes == 1) environment.emplace("NCCL_SOCKET_IFNAME", "lo");
  environment["LOCKSTEP_SHARE_GPUS"] = "1";
}

void show_only_own_gpu(base::Environment& environment, const VisibleGpus& gpus,
                       int local_rank) {
  environment["LOCAL_RANK"] = "0";
  if (gpus.count() == 0) return;
  environment["CUDA_VISIBLE_DEVICES"] =
      gpus.names[static_cast<size_t>(local_rank % gpus.count())];
}

std::string signal_names(const std::vector<int>& signals) {
  std::vector<std::string> names;
  names.reserve(signals.size());
  for (const int signal : signals) names.push_back(base::signal_name(signal));
  return base::join(names, ",");
}

}  // namespace

base::Environment world_variables(const Plan& plan, const JobWorld& world,
                                  int local_rank) {
  base::Environment result;
  const auto set = [&result](const char* name, int value) {
    result[name] = std::to_string(value);
  };
  set("RANK", world.first_rank + local_rank);
  set("GROUP_RANK", world.node);
  set("ROLE_RANK", world.first_role_rank + local_rank);
  set("WORLD_SIZE", world.num_ranks);
  set("GROUP_WORLD_SIZE", world.num_nodes);
  set("ROLE_WORLD_SIZE", world.role_size);
  result["MASTER_ADDR"] = world.master_addr;
  set("MASTER_PORT", world.master_port);
  set("TORCHELASTIC_RESTART_COUNT", world.attempt);
  if (plan.nodes.is_elastic()) set("LOCKSTEP_GENERATION", world.attempt);
  return result;
}

base::Environment worker_environment(const Plan& plan,
                                     const WorkerPlace& place) {
  base::Environment result = plan.environment;
  const JobWorld& world = place.world;
  const int rank = world.first_rank + place.local_rank;
  const auto set = [&result](const char* name, int value) {
    result[name] = std::to_string(value);
  };
  result.erase("LOCKSTEP_ELASTIC");
  result.erase("LOCKSTEP_GENERATION");
  for (auto& [name, value] : world_variables(plan, world, place.local_rank)) {
    result[name] = value;
  }
  if (plan.nodes.is_elastic()) {
    result["LOCKSTEP_ELASTIC"] =
        fmt::format("{}:{}", plan.nodes.min_nodes, plan.nodes.num_nodes);
  }
  set("LOCAL_RANK", place.local_rank);
  set("LOCAL_WORLD_SIZE", plan.num_processes);
  result["ROLE_NAME"] = plan.options.role;
  result["TORCHELASTIC_MAX_RESTARTS"] =
      std::to_string(plan.options.max_restarts);
  result["TORCHELASTIC_RUN_ID"] = plan.run_id;
  result["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  result.emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  // Gloo listens where the host's name points to, often on the network.
  if (world.master_addr == "127.0.0.1" || world.master_addr == "::1") {
    result.emplace("GLOO_SOCKET_IFNAME", "lo");
  }
  result["TORCHELASTIC_ERROR_FILE"] = place.error_file.string();
  result["TORCHELASTIC_SIGNALS_TO_HANDLE"] =
      signal_names(plan.options.stop_signals);
  result["LOCKSTEP_STATUS_FD"] = std::to_string(place.status_fd);
  result.erase(net::kSecretVariable);
  if (place.secret_fd >= 0) set(net::kSecretVariable, place.secret_fd);
  result.erase(base::kSlotFileVariable);
  if (place.slots_fd >= 0) set(base::kSlotFileVariable, place.slots_fd);
  result.erase(base::kRecoveryVariable);
  if (plan.recovers_in_memory && !plan.options.recovers_in_memory) {
    result[base::kRecoveryVariable] = base::kRecoveryByDefault;
  }
  result["LOCKSTEP_LAUNCHER"] = "1";
  result.erase(
      base::kTerminalColumnsVariable);  // of a launcher around this one
  if (place.terminal_columns > 0) {
    result[base::kTerminalColumnsVariable] =
        std::to_string(place.terminal_columns);
  }
  result["LOCKSTEP_JOB"] = world.job;
  if (plan.options.share_gpus && plan.num_processes > plan.gpus.count()) {
    share_gpu(result, rank, world.num_nodes);
  }
  if (plan.options.virtual_local_rank) {
    show_only_own_gpu(result, plan.gpus, place.local_rank);
  }
  return result;
}

std::string line_prefix(const Plan& plan, int local_rank, int rank) {
  std::string text =
      base::find(plan.environment, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE")
          .value_or("[${role_name}${local_rank}]:");
  text = base::replace_all(std::move(text), "${role_name}", plan.options.role);
  text = base::replace_all(std::move(text), "${local_rank}",
                           std::to_string(local_rank));
  return base::replace_all(std::move(text), "${rank}", std::to_string(rank));
}

}  // namespace lockstep::launch
