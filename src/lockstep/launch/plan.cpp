#include "lockstep/launch/plan.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "lockstep/base/files.h"
#include "lockstep/base/gpu_setting.h"
#include "lockstep/base/library_settings.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/launch/gpu_bus.h"
#include "lockstep/launch/nesting.h"
#include "lockstep/launch/port.h"
#include "lockstep/launch/program_flags.h"

namespace lockstep::launch {
namespace {

int count_affine_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// -h may mean anything among other arguments ("-h 512").
bool asks_for_help(const RunOptions& options) {
  const auto& arguments = options.arguments;
  if (arguments.size() == 1 && arguments[0] == "-h") return true;
  return std::find(arguments.begin(), arguments.end(), "--help") !=
         arguments.end();
}

std::string gpu_setting_text(const VisibleGpus& gpus) {
  if (!gpus.setting) return "";
  return fmt::format(
      " (CUDA_VISIBLE_DEVICES={}{})", *gpus.setting,
      gpus.installed == 0
          ? ""
          : "; this machine has " + base::installed_gpus_text(gpus.installed));
}

// By `--device cpu`, `--nproc cpu`, or a variable that hides all GPUs.
bool is_meant_for_cpus(const RunOptions& options, const VisibleGpus& gpus) {
  if (gpus.setting && base::means_cpus(*gpus.setting)) return true;
  if (find_flag(options.arguments, "device") == "cpu") return true;
  return options.nproc == "cpu" && !is_own_worker(options);
}

// Training on CPUs because of a mistyped variable would be noticed late.
void check_visibility(const Plan& plan) {
  const VisibleGpus& gpus = plan.gpus;
  if (gpus.count() > 0 || gpus.installed == 0 || plan.is_for_cpus) return;
  throw ConfigError(
      fmt::format("{}; name some of them, or make the variable empty "
                  "(CUDA_VISIBLE_DEVICES=) to run on CPUs{}",
                  base::none_visible_text(gpus.setting, gpus.installed),
                  is_own_worker(plan.options) ? ", or pass --device cpu" : ""));
}

void note_hidden_gpus(Plan& plan) {
  const VisibleGpus& gpus = plan.gpus;
  if (gpus.installed == 0 || !gpus.setting ||
      !base::means_cpus(*gpus.setting)) {
    return;
  }
  plan.notes.push_back(
      fmt::format("CUDA_VISIBLE_DEVICES={} hides {}: this job runs on CPUs",
                  *gpus.setting, base::installed_gpus_text(gpus.installed)));
}

int count_processes(const RunOptions& options, const VisibleGpus& gpus,
                    const Machine& machine) {
  // A program that explains itself does so once.
  if (asks_for_help(options)) return 1;
  if (options.nproc == "cpu") return machine.count_cores();
  if (options.nproc == "auto") {
    const bool has_gpus = gpus.count() > 0 && !is_meant_for_cpus(options, gpus);
    return has_gpus ? gpus.count() : machine.count_cores();
  }
  if (options.nproc == "gpu") {
    if (gpus.count() > 0) return gpus.count();
    throw ConfigError(fmt::format(
        "--nproc-per-node gpu: no GPU is visible{}; use --nproc-per-node cpu "
        "or a number to run on the CPU",
        gpu_setting_text(gpus)));
  }
  return static_cast<int>(*base::parse_integer(options.nproc));
}

void check_gpus(const Plan& plan) {
  const int num_gpus = plan.gpus.count();
  if (num_gpus == 0 || plan.num_processes <= num_gpus) return;
  if (plan.options.share_gpus || plan.is_for_cpus) return;
  throw ConfigError(fmt::format(
      "{} processes were asked for but {} GPU{} visible{}; use "
      "--nproc-per-node {}, or --share-gpus to put several processes on one "
      "GPU",
      plan.num_processes, num_gpus, num_gpus == 1 ? " is" : "s are",
      gpu_setting_text(plan.gpus), num_gpus));
}

void choose_cpus(Plan& plan, const Machine& machine) {
  if (!plan.options.numa_binding) return;
  if (plan.gpus.count() == 0) {
    throw ConfigError(fmt::format("--numa-binding needs a visible GPU{}",
                                  gpu_setting_text(plan.gpus)));
  }
  plan.worker_cpus =
      choose_near_cpus({.mode = *plan.options.numa_binding,
                        .bus_ids = machine.find_bus_ids(plan.gpus),
                        .num_workers = plan.num_processes,
                        .allowed = machine.find_allowed_cpus()},
                       machine.sysfs);
}

// Without a place to meet.
void note_missing_nodes(Plan& plan) {
  if (plan.options.max_nodes == 1 ||
      plan.nodes.mode != NodesPlan::Mode::kAlone) {
    return;
  }
  plan.notes.push_back(
      fmt::format("--nnodes 1:{}: this job runs on this node alone; other "
                  "nodes can join with --rdzv-endpoint HOST",
                  plan.options.max_nodes));
}

// torchrun's way to ask for no files at all.
void drop_log_files(RunOptions& options) {
  if (options.log_dir != "/dev/null") return;
  options.log_dir.clear();
  options.redirects = {};
  options.tee = {};
  options.stdout_filters.clear();
  options.stderr_filters.clear();
}

void refuse_file_timer(const base::Environment& environment) {
  if (base::find(environment, "TORCHELASTIC_ENABLE_FILE_TIMER") != "1") return;
  throw ConfigError(
      "TORCHELASTIC_ENABLE_FILE_TIMER=1 is not supported: this launcher serves "
      "no timers over a named pipe; unset the variable, and limit collectives "
      "by --timeout");
}

// The guides give the port to their program; here the launcher chooses it.
void take_port_of_worker(RunOptions& options) {
  const bool is_chosen =
      options.master_port || options.standalone || !options.endpoint.empty();
  if (is_chosen || !is_own_worker(options)) return;
  const auto text = find_flag(options.arguments, "master_port");
  const auto port = text ? base::parse_integer(*text) : std::nullopt;
  // The worker itself refuses what is not a port.
  if (port && *port > 0 && *port <= 65535) {
    options.master_port = static_cast<int>(*port);
  }
}

// With several nodes, number 0 hosts the store at the address that all know.
// Without numbers it shows later which node it is.
void choose_address_of_node(Plan& plan) {
  const NodesPlan& nodes = plan.nodes;
  if (nodes.mode != NodesPlan::Mode::kStatic || nodes.node_rank != 0) return;
  check_local_address(nodes.address);
  plan.master_addr = nodes.address;
  plan.master_port = nodes.port;
}

// --rdzv-endpoint, else --master-addr and --master-port, else MASTER_ADDR and
// MASTER_PORT of the launcher's own environment, else this host, any port.
void choose_address(Plan& plan, const base::Environment& environment) {
  const RunOptions& options = plan.options;
  if (plan.nodes.mode != NodesPlan::Mode::kAlone) {
    choose_address_of_node(plan);
    return;
  }
  std::string address = options.master_addr;
  std::optional<int> port = options.master_port;
  if (!options.standalone) {
    // Below another launcher they are its choice for its own workers.
    const bool is_nested = base::find(environment, "LOCKSTEP_LAUNCHER") ||
                           base::find(environment, "TORCHELASTIC_RUN_ID");
    const base::Environment& variables =
        is_nested ? base::Environment() : environment;
    if (address.empty()) {
      address =
          base::find(variables, "MASTER_ADDR").value_or(options.local_addr);
    }
    if (const auto text = base::find(variables, "MASTER_PORT"); text && !port) {
      port = parse_port(*text, "MASTER_PORT");
    }
    if (!options.endpoint.empty()) {
      const Endpoint endpoint = parse_endpoint(options.endpoint, 0);
      address = endpoint.host;
      port = endpoint.port;
    }
  } else {
    port.reset();
    address.clear();
  }
  if (address.empty() || address == "localhost") address = "127.0.0.1";
  check_local_address(address);
  plan.master_addr = address;
  if (port && *port != 0) plan.master_port = port;
}

void choose_threads(Plan& plan, const Machine& machine) {
  if (plan.num_processes < 2) return;
  if (base::find(plan.environment, "OMP_NUM_THREADS")) return;
  const int cores = machine.count_cores();
  int threads = std::max(1, cores / plan.num_processes);
  // More threads than CPUs do not help.
  for (const CpuList& cpus : plan.worker_cpus) {
    threads = std::min(threads, static_cast<int>(cpus.size()));
  }
  plan.environment["OMP_NUM_THREADS"] = std::to_string(threads);
  plan.notes.push_back(fmt::format(
      "OMP_NUM_THREADS={} for each of {} processes ({} core{} shared); set it "
      "yourself to change it",
      threads, plan.num_processes, cores, cores == 1 ? "" : "s"));
}

void choose_library_settings(Plan& plan, const Machine& machine) {
  for (const base::LibrarySetting& setting :
       base::library_settings(plan.environment, machine.cpuid)) {
    plan.environment[setting.name] = setting.value;
    if (!setting.note.empty()) plan.notes.push_back(setting.note);
  }
}

void choose_timeout(Plan& plan) {
  if (plan.options.timeout) {
    const std::string text = fmt::format("{}", *plan.options.timeout);
    plan.environment["TORCH_DISTRIBUTED_TIMEOUT"] = text;
    plan.environment["NCCL_TIMEOUT"] = text;
  }
  plan.timeout_seconds = base::collective_timeout_seconds(plan.environment);
}

void choose_recovery(Plan& plan) {
  plan.recovers_in_memory = plan.options.recovers_in_memory.value_or(false);
  if (plan.recovers_in_memory && plan.command.is_python) {
    throw ConfigError(
        "--recover memory: a Python program cannot hand its state to a new "
        "process; leave it out (--max-restarts N restarts all processes)");
  }
}

// Its worker knows how to wait; any other program would just run.
void refuse_spares(const RunOptions& options) {
  if (options.is_recipe || options.num_spares.value_or(0) == 0) return;
  throw ConfigError(
      "--spares: only lockstep train keeps processes that can take the place "
      "of a rank; leave it out");
}

std::string unique_name() {
  return std::string(
      base::trim(base::read_file("/proc/sys/kernel/random/uuid")));
}

}  // namespace

Machine this_machine() {
  return {.count_gpus = count_installed_gpus,
          .count_cores = count_affine_cores,
          .cpuid = base::ask_processor,
          .knows_gpu = is_known_gpu,
          .find_bus_ids =
              [](const VisibleGpus& gpus) { return find_bus_ids(gpus.names); },
          .find_allowed_cpus = find_allowed_cpus};
}

Plan make_plan(const RunOptions& options, const base::Environment& environment,
               const Machine& machine) {
  if (!options.standalone) {
    refuse_nested_launch(environment, options.endpoint.empty()
                                          ? options.num_nodes
                                          : options.max_nodes);
  }
  refuse_file_timer(environment);
  Plan plan;
  plan.options = options;
  drop_log_files(plan.options);
  take_port_of_worker(plan.options);
  plan.environment = environment;
  plan.nodes = plan_nodes(plan.options, environment);
  plan.job = unique_name();
  plan.run_id = options.standalone ? plan.job : options.run_id;
  plan.gpus =
      find_visible_gpus(environment, machine.count_gpus, machine.knows_gpu);
  plan.is_for_cpus = is_meant_for_cpus(options, plan.gpus);
  if (!asks_for_help(options)) check_visibility(plan);
  plan.num_processes = count_processes(options, plan.gpus, machine);
  check_gpus(plan);
  note_hidden_gpus(plan);
  note_missing_nodes(plan);
  plan.command = find_command(options, environment);
  choose_recovery(plan);
  refuse_spares(options);
  choose_address(plan, environment);
  choose_cpus(plan, machine);
  choose_threads(plan, machine);
  choose_library_settings(plan, machine);
  choose_timeout(plan);
  return plan;
}

}  // namespace lockstep::launch
