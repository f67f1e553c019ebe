#include "lockstep/launch/worker_environment.h"

#include <unistd.h>

#include "lockstep/base/signals.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/terminal.h"
#include "lockstep/net/job_secret.h"

namespace lockstep::launch {
namespace {

// NCCL refuses two ranks on one GPU of one host; as "different hosts" they
// communicate over the loopback interface.
void share_gpu(base::Environment& environment, int rank) {
  environment["NCCL_HOSTID"] =
      "lockstep-" + std::to_string(getpid()) + "-" + std::to_string(rank);
  environment.emplace("NCCL_SOCKET_IFNAME", "lo");
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
  for (const int signal : signals) names.push_back(base::signal_name(signal));
  return base::join(names, ",");
}

}  // namespace

base::Environment worker_environment(const Plan& plan,
                                     const WorkerPlace& place) {
  base::Environment result = plan.environment;
  const std::string rank = std::to_string(place.local_rank);
  const std::string size = std::to_string(plan.num_processes);
  result["LOCAL_RANK"] = rank;
  result["RANK"] = rank;
  result["GROUP_RANK"] = "0";
  result["ROLE_RANK"] = rank;
  result["ROLE_NAME"] = plan.options.role;
  result["LOCAL_WORLD_SIZE"] = size;
  result["WORLD_SIZE"] = size;
  result["GROUP_WORLD_SIZE"] = "1";
  result["ROLE_WORLD_SIZE"] = size;
  result["MASTER_ADDR"] = plan.master_addr;
  result["MASTER_PORT"] = std::to_string(place.master_port);
  result["TORCHELASTIC_RESTART_COUNT"] = std::to_string(place.attempt);
  result["TORCHELASTIC_MAX_RESTARTS"] =
      std::to_string(plan.options.max_restarts);
  result["TORCHELASTIC_RUN_ID"] = plan.run_id;
  result["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  result.emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  // Gloo listens where the host's name points to, often on the network.
  if (plan.master_addr == "127.0.0.1" || plan.master_addr == "::1") {
    result.emplace("GLOO_SOCKET_IFNAME", "lo");
  }
  result["TORCHELASTIC_ERROR_FILE"] = place.error_file.string();
  result["TORCHELASTIC_SIGNALS_TO_HANDLE"] =
      signal_names(plan.options.stop_signals);
  result["LOCKSTEP_STATUS_FD"] = std::to_string(place.status_fd);
  result[net::kSecretVariable] = std::to_string(place.secret_fd);
  result["LOCKSTEP_LAUNCHER"] = "1";
  result.erase(
      base::kTerminalColumnsVariable);  // of a launcher around this one
  if (place.terminal_columns > 0) {
    result[base::kTerminalColumnsVariable] =
        std::to_string(place.terminal_columns);
  }
  result["LOCKSTEP_JOB"] = plan.job;
  if (plan.options.share_gpus && plan.num_processes > plan.gpus.count()) {
    share_gpu(result, place.local_rank);
  }
  if (plan.options.virtual_local_rank) {
    show_only_own_gpu(result, plan.gpus, place.local_rank);
  }
  return result;
}

std::string line_prefix(const Plan& plan, int local_rank) {
  const std::string rank = std::to_string(local_rank);
  std::string text =
      base::find(plan.environment, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE")
          .value_or("[${role_name}${local_rank}]:");
  text = base::replace_all(std::move(text), "${role_name}", plan.options.role);
  text = base::replace_all(std::move(text), "${local_rank}", rank);
  return base::replace_all(std::move(text), "${rank}", rank);
}

}  // namespace lockstep::launch
