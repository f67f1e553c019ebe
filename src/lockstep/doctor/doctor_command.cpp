#include "lockstep/doctor/doctor_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/doctor/disk_checks.h"
#include "lockstep/doctor/doctor_options.h"
#include "lockstep/doctor/finding.h"
#include "lockstep/doctor/gpu_checks.h"
#include "lockstep/doctor/held_signals.h"
#include "lockstep/doctor/job_checks.h"
#include "lockstep/doctor/limit_checks.h"
#include "lockstep/doctor/network_checks.h"
#include "lockstep/error.h"
#include "lockstep/launch/gpu_bus.h"
#include "lockstep/launch/plan.h"
#include "lockstep/launch/program_flags.h"
#include "lockstep/launch/torch_search.h"
#include "lockstep/launch/worker_program.h"

namespace lockstep::doctor {
namespace {

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

class Doctor {
 public:
  Doctor(DoctorOptions options, const base::Environment& environment,
         const std::function<void(std::string_view)>& write)
      : options_(std::move(options)),
        environment_(environment),
        write_(write),
        visible_(launch::find_visible_gpus(
            environment, launch::count_installed_gpus, launch::is_known_gpu)) {}

  int run() {
    demand_ = gpu_demand();
    check_gpus();
    check_network();
    check_limits();
    const auto save_dir = flag("save_dir");
    if (save_dir) add(check_disk({.folder = *save_dir}));
    if (const auto probe = find_probe()) check_processes_at_work(*probe);
    if (!options_.recipe.empty()) add(check_cpus(limits_, job_));
    if (options_.json) {
      write_(findings_json(findings_));
    } else {
      write_(summary_text(findings_));
    }
    return exit_code_of(findings_);
  }

 private:
  void add(const Finding& finding) {
    findings_.push_back(finding);
    if (!options_.json) write_(finding_line(finding));
  }

  void add(const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) add(finding);
  }

  std::optional<std::string> flag(std::string_view name) const {
    return launch::find_flag(options_.recipe, name);
  }

  bool uses_gpus() const { return visible_.count() > 0 && !demand_.wants_cpus; }

  GpuDemand gpu_demand() const {
    GpuDemand demand{.wants_gpus = options_.launch.nproc == "gpu" ||
                                   flag("device") == "cuda",
                     .wants_cpus = flag("device") == "cpu",
                     .shares_gpus = options_.launch.share_gpus};
    const std::string& nproc = options_.launch.nproc;
    const int gpus = demand.wants_cpus ? 0 : visible_.count();
    if (const auto number = base::parse_integer(nproc)) {
      demand.num_processes = static_cast<int>(*number);
    } else if (nproc == "cpu") {
      demand.num_processes = launch::this_machine().count_cores();
    } else {
      demand.num_processes = std::max(1, gpus);
    }
    // As lockstep train does without --nproc.
    if (!options_.launch.is_nproc_given) {
      demand.num_processes = std::max(1, gpus);
    }
    const auto torch = launch::linked_torch(launch::own_folder());
    demand.torch_cuda = torch ? cuda_number(torch->build.cuda) : 0;
    return demand;
  }

  void check_gpus() {
    const GpuFacts facts = read_gpus(visible_);
    add(check_gpu_count(facts, demand_));
    add(check_driver(facts, demand_));
    if (const auto dropped = check_dropped_gpus(facts)) add(*dropped);
  }

  void check_network() {
    const launch::RunOptions& launch = options_.launch;
    std::string address = launch.master_addr;
    if (address.empty()) {
      address = base::find(environment_, "MASTER_ADDR").value_or("");
    }
    auto port = launch.master_port;
    const auto text = port ? std::nullopt : master_port_text();
    if (text) {
      const auto number = base::parse_integer(*text);
      if (number && *number >= 0 && *number < 65536) {
        port = static_cast<int>(*number);
      }
    }
    const std::string meeting =
        address.empty() || address == "localhost" ? "127.0.0.1" : address;
    add(check_interface(read_interfaces(), environment_, meeting));
    add(check_host_names(base::host_name(), address));
    add(check_port(meeting, port));
  }

  // The flag of the guides, else the variable.
  std::optional<std::string> master_port_text() const {
    if (auto text = flag("master_port")) return text;
    return base::find(environment_, "MASTER_PORT");
  }

  void check_limits() {
    limits_ = read_limits();
    auto words = flag("workers");
    if (!words) words = flag("num_workers");
    if (const auto workers = base::parse_integer(words.value_or(""))) {
      job_.workers = *workers;
    }
    job_.num_processes = demand_.num_processes;
    job_.uses_gpus = uses_gpus();
    add(check_shared_memory(limits_, job_));
    add(check_open_files(limits_, job_));
    add(check_processes(limits_, job_));
    add(check_memory(limits_, job_));
    // A recipe tells how many loader threads it has.
    if (options_.recipe.empty()) add(check_cpus(limits_, job_));
  }

  // No value, and a line, where the worker or its torch is missing.
  std::optional<ProbeCommand> find_probe() {
    try {
      const std::string worker =
          launch::find_worker(environment_, launch::own_folder());
      ProbeCommand probe{
          .launcher = std::filesystem::read_symlink("/proc/self/exe").string(),
          .worker = worker,
          .environment = launch::with_torch(environment_, worker),
          .limit_seconds = options_.limit_seconds};
      const auto torch = launch::linked_torch(launch::own_folder());
      add(Finding{.check = "torch",
                  .text = torch ? torch->build.version + " for " + worker
                                : "found for " + worker});
      return probe;
    } catch (const std::exception& error) {
      add(Finding{.check = "torch",
                  .level = Level::kFailure,
                  .text = error.what(),
                  .mend = "lockstep version, and docs/how-to/installing.md"});
      return std::nullopt;
    }
  }

  void check_processes_at_work(const ProbeCommand& probe) {
    const int gpus = uses_gpus() ? visible_.count() : 0;
    add(check_gpu_copies(probe, gpus));
    add(check_exchange(probe,
                       {.num_processes = std::max(2, demand_.num_processes),
                        .num_gpus = gpus}));
    if (options_.recipe.empty()) {
      if (!flag("save_dir")) add(check_disk({}));
      return;
    }
    // What is wrong with the machine would show as trouble of the recipe, and
    // an exchange that hangs would hang once more.
    if (exit_code_of(findings_) != 0) {
      add(Finding{.check = "recipe",
                  .level = Level::kWarning,
                  .text = "not measured, because of the failures above",
                  .mend = "mend them, then run this command again"});
      return;
    }
    const RecipeFindings recipe =
        check_recipe(probe, {.arguments = options_.recipe,
                             .num_processes = demand_.num_processes,
                             .shares_gpus = options_.launch.share_gpus,
                             .load = load_,
                             .cpus = limits_.cpus});
    add(recipe.findings);
    if (recipe.measured) check_measured(*recipe.measured);
  }

  void check_measured(const RecipeMeasurement& measured) {
    job_.workers = measured.workers;
    job_.peak_bytes = measured.peak_host_bytes;
    std::vector<Finding> disk =
        check_disk({.folder = measured.save_dir,
                    .checkpoint_bytes = measured.checkpoint_bytes,
                    .num_checkpoints = measured.num_checkpoints});
    // The folder of the flag was looked at before.
    if (flag("save_dir")) disk.erase(disk.begin());
    add(disk);
    Finding memory = check_memory(read_limits(), job_);
    memory.check = "job memory";
    add(memory);
  }

  DoctorOptions options_;
  const base::Environment& environment_;
  const std::function<void(std::string_view)>& write_;
  launch::VisibleGpus visible_;
  GpuDemand demand_ = {};
  Limits limits_ = {};
  JobSize job_ = {};
  const double load_ = load_average();  // Before anything is measured.
  std::vector<Finding> findings_ = {};
};

}  // namespace

int doctor_command(std::span<const std::string> arguments,
                   const base::Environment& environment,
                   const std::function<void(std::string_view)>& write) {
  DoctorOptions options = parse_doctor_options(arguments, environment);
  if (options.help) {
    write(doctor_help());
    return 0;
  }
  try {
    return Doctor(std::move(options), environment, write).run();
  } catch (const Interrupted& interrupted) {
    raise(interrupted.signal);
    return 128 + interrupted.signal;
  }
}

}  // namespace lockstep::doctor
