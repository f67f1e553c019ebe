#include "lockstep/doctor/job_checks.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/doctor/probe.h"

namespace lockstep::doctor {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kResultMark = "doctor result ";
constexpr const char* kPairMark = "doctor copy ";
constexpr const char* kStallVariable = "LOCKSTEP_DOCTOR_STALL";

// Where ranks meet is checked by itself.
base::Environment without_meeting(base::Environment environment) {
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE",
                           "LOCAL_RANK", "LOCAL_WORLD_SIZE"}) {
    environment.erase(name);
  }
  return environment;
}

// ", and process 7 (name) cannot be killed: ..."
std::string left_text(const ProbeResult& result) {
  return result.unkillable.empty() ? "" : ", and " + result.unkillable;
}

std::string rate_text(double bytes_per_second) {
  return base::bytes_text(static_cast<int64_t>(bytes_per_second)) + "/s";
}

nlohmann::json result_of(const ProbeResult& result) {
  auto json = nlohmann::json::parse(result.last_line(kResultMark), nullptr,
                                    /*allow_exceptions=*/false);
  return json.is_object() ? json : nlohmann::json::object();
}

struct Way {
  const char* name;
  const char* device;
  const char* exchange;  // LOCKSTEP_EXCHANGE
  const char* mend;
};
constexpr Way kNccl = {
    "exchange NCCL", "cuda", "",
    "NCCL_DEBUG=INFO lockstep doctor; then try "
    "NCCL_P2P_DISABLE=1, NCCL_SOCKET_IFNAME=<interface> or a "
    "larger /dev/shm"};
constexpr std::array kCpuWays = {
    Way{"exchange shared", "cpu", "shared",
        "LOCKSTEP_EXCHANGE=gloo lockstep train ..."},
    Way{"exchange Gloo", "cpu", "gloo",
        "unset GLOO_SOCKET_IFNAME, or set it to a name of ip -br addr"},
};

Finding measure_exchange(const ProbeCommand& probe, const ExchangeJob& job,
                         const Way& way) {
  Finding finding{.check = way.name, .kind = Class::kExchange};
  base::Environment environment = without_meeting(probe.environment);
  if (*way.exchange != '\0') {
    environment["LOCKSTEP_EXCHANGE"] = way.exchange;
  }
  Words command = {probe.launcher,     "run",
                   "--nproc-per-node", std::to_string(job.num_processes),
                   "--timeout",        fmt::format("{}", probe.limit_seconds)};
  if (job.num_processes > job.num_gpus) command.emplace_back("--share-gpus");
  for (const char* word :
       {probe.worker.c_str(), "probe", "exchange", way.device}) {
    command.emplace_back(word);
  }
  const ProbeResult result =
      run_probe(command, environment, probe.limit_seconds);
  if (result.timed_out) {
    finding.level = Level::kFailure;
    finding.kind = Class::kHang;
    finding.text =
        fmt::format("{} processes did not finish an all-reduce within {}{}",
                    job.num_processes, base::duration_text(probe.limit_seconds),
                    left_text(result));
    finding.mend = way.mend;
    return finding;
  }
  const nlohmann::json json = result_of(result);
  if (!result.is_good() || !json.contains("bytes_per_second")) {
    finding.level = Level::kFailure;
    finding.text = result.problem();
    finding.mend = way.mend;
    return finding;
  }
  finding.text =
      fmt::format("{} processes{}: all-reduce at {}, {:.0f} us for a small one",
                  job.num_processes,
                  *way.exchange == '\0' && job.num_processes > job.num_gpus
                      ? fmt::format(" on {} GPU{}", job.num_gpus,
                                    job.num_gpus == 1 ? "" : "s")
                      : "",
                  rate_text(json.value("bytes_per_second", 0.0)),
                  json.value("small_seconds", 0.0) * 1e6);
  return finding;
}

}  // namespace

Finding check_gpu_copies(const ProbeCommand& probe, int num_gpus) {
  Finding finding{.check = "gpu copies", .kind = Class::kDevice};
  const std::string injected =
      base::find(probe.environment, kStallVariable).value_or("");
  const bool is_injected = injected == "copies" || injected == "wrong";
  if (num_gpus == 0 && !is_injected) {
    finding.text = "no GPU: nothing to copy";
    return finding;
  }
  const ProbeResult result =
      run_probe({probe.worker, "probe", "copies"},
                without_meeting(probe.environment), probe.limit_seconds);
  if (result.timed_out) {
    finding.level = Level::kFailure;
    finding.kind = Class::kHang;
    finding.text = fmt::format(
        "copy {} did not end within {}{}: the known trouble of peer-to-peer "
        "access behind an IOMMU or PCI access control (ACS){}",
        result.last_line(kPairMark), base::duration_text(probe.limit_seconds),
        is_injected ? " (made to hang by LOCKSTEP_DOCTOR_STALL)" : "",
        left_text(result));
    finding.mend =
        "export NCCL_P2P_DISABLE=1; for good: iommu=pt on the kernel's command "
        "line, or ACS off in the firmware";
    return finding;
  }
  const nlohmann::json json = result_of(result);
  if (!result.is_good() || json.empty()) {
    finding.level = Level::kFailure;
    finding.text = result.problem();
    finding.mend = "nvidia-smi topo -m, then export NCCL_P2P_DISABLE=1";
    return finding;
  }
  const std::string wrong = json.value("wrong", "");
  if (!wrong.empty()) {
    finding.level = Level::kFailure;
    finding.text = "copy " + wrong + " arrived with other data" +
                   (is_injected ? " (made so by LOCKSTEP_DOCTOR_STALL)" : "");
    finding.mend = "export NCCL_P2P_DISABLE=1, and have the machine checked";
    return finding;
  }
  finding.text = fmt::format("{} cop{} arrived unchanged, the slowest at {}",
                             json.value("copies", 0),
                             json.value("copies", 0) == 1 ? "y" : "ies",
                             rate_text(json.value("slowest", 0.0)));
  if (num_gpus == 1) {
    finding.text +=
        " (one GPU: within it; copies between GPUs cannot be "
        "checked here)";
  }
  return finding;
}

std::vector<Finding> check_exchange(const ProbeCommand& probe,
                                    const ExchangeJob& job) {
  std::vector<Finding> findings;
  if (job.num_gpus > 0) {
    findings.push_back(measure_exchange(probe, job, kNccl));
  }
  for (const Way& way : kCpuWays) {
    findings.push_back(measure_exchange(probe, job, way));
  }
  return findings;
}

}  // namespace lockstep::doctor
