#include "lockstep/base/task_place.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/base/host_list.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::base {
namespace {

// The variables of one kind of launcher. Those of the job's name are tried in
// their order.
struct Kind {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
  std::array<const char*, 3> job;
};

constexpr std::array<Kind, 4> kMpi = {{
    {"mpirun",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid"}},
    {"mpirun",
     "MV2_COMM_WORLD_RANK",
     "MV2_COMM_WORLD_SIZE",
     "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE",
     {}},
    {"mpiexec",
     "PMI_RANK",
     "PMI_SIZE",
     "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS",
     {}},
    {"mpiexec",
     "PMI_RANK",
     "PMI_SIZE",
     "PMI_LOCAL_RANK",
     "PMI_LOCAL_SIZE",
     {"PALS_APID"}},
}};

constexpr int64_t kMost = std::numeric_limits<int>::max();

int in_range(const Environment& environment, const std::string& name,
             int64_t low, int64_t high) {
  const int64_t value = find_integer(environment, name).value_or(low);
  if (value >= low && value <= high) return static_cast<int>(value);
  throw ConfigError(fmt::format(
      "environment variable {}={} is out of range: it must be from {} to {}",
      name, value, low, high));
}

std::optional<TaskPlace> find_mpi_task(const Environment& environment,
                                       const Kind& kind) {
  if (!find(environment, kind.rank) || !find(environment, kind.size) ||
      !find(environment, kind.local_size)) {
    return std::nullopt;
  }
  TaskPlace place;
  place.launcher = kind.launcher;
  place.rank_variable = kind.rank;
  place.size_variable = kind.size;
  place.size = in_range(environment, kind.size, 1, kMost);
  place.rank = in_range(environment, kind.rank, 0, place.size - int64_t{1});
  const int local_size = in_range(environment, kind.local_size, 1, place.size);
  place.local_rank =
      in_range(environment, kind.local_rank, 0, local_size - int64_t{1});
  place.local_size = local_size;
  if (local_size < place.size) {
    place.not_one_machine = fmt::format("{}={} of {}={}", kind.local_size,
                                        local_size, kind.size, place.size);
  }
  for (const char* name : kind.job) {
    if (name == nullptr || !place.job.empty()) break;
    place.job = find(environment, name).value_or("");
  }
  return place;
}

// The variable that a step of srun has, else that of the whole allocation.
std::string step_variable(const Environment& environment, const char* step,
                          const char* allocation) {
  return find(environment, step) ? step : allocation;
}

// How many tasks of a step with `num_nodes` nodes are on this one.
int slurm_local_size(const Environment& environment, const TaskPlace& place,
                     int num_nodes) {
  if (num_nodes == 1) return place.size;
  const auto counts =
      find(environment, step_variable(environment, "SLURM_STEP_TASKS_PER_NODE",
                                      "SLURM_TASKS_PER_NODE"));
  if (!counts) return (place.size + num_nodes - 1) / num_nodes;
  const std::vector<int> tasks = expand_task_counts(*counts);
  const int node = in_range(environment, "SLURM_NODEID", 0,
                            static_cast<int64_t>(tasks.size()) - 1);
  return tasks[node];
}

std::optional<TaskPlace> find_slurm_task(const Environment& environment) {
  // The script of sbatch has SLURM_PROCID=0 and the allocation's SLURM_NTASKS,
  // but is not a step.
  const auto step = find(environment, "SLURM_STEP_ID");
  if (!step || !find(environment, "SLURM_PROCID")) return std::nullopt;
  TaskPlace place;
  place.launcher = "srun";
  place.rank_variable = "SLURM_PROCID";
  place.size_variable =
      step_variable(environment, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS");
  place.size = in_range(environment, place.size_variable, 1, kMost);
  place.rank =
      in_range(environment, "SLURM_PROCID", 0, place.size - int64_t{1});
  const std::string nodes =
      step_variable(environment, "SLURM_STEP_NUM_NODES", "SLURM_NNODES");
  const int num_nodes = in_range(environment, nodes, 1, kMost);
  if (num_nodes > 1) {
    place.not_one_machine = fmt::format("{}={}", nodes, num_nodes);
  }
  place.local_size = slurm_local_size(environment, place, num_nodes);
  place.local_rank =
      in_range(environment, "SLURM_LOCALID", 0, place.local_size - int64_t{1});
  place.hosts =
      find(environment, step_variable(environment, "SLURM_STEP_NODELIST",
                                      "SLURM_JOB_NODELIST"))
          .value_or("");
  if (const auto job = find(environment, "SLURM_JOB_ID")) {
    place.job = fmt::format("slurm {}.{}", *job, *step);
  }
  return place;
}

// PMI alone does not show which tasks run on one machine.
std::optional<TaskPlace> find_bare_pmi_task(const Environment& environment) {
  if (!find(environment, "PMI_RANK") || !find(environment, "PMI_SIZE")) {
    return std::nullopt;
  }
  TaskPlace place;
  place.launcher = "mpiexec";
  place.rank_variable = "PMI_RANK";
  place.size_variable = "PMI_SIZE";
  place.size = in_range(environment, "PMI_SIZE", 1, kMost);
  place.rank = in_range(environment, "PMI_RANK", 0, place.size - int64_t{1});
  place.not_one_machine = "no MPI_LOCALNRANKS";
  return place;
}

std::optional<TaskPlace> find_any_task(const Environment& environment) {
  // mpirun inside an allocation starts its tasks in a separate step.
  for (const Kind& kind : kMpi) {
    if (auto place = find_mpi_task(environment, kind)) return place;
  }
  if (auto place = find_slurm_task(environment)) return place;
  return find_bare_pmi_task(environment);
}

struct Ancestor {
  pid_t parent = 0;
  std::string start_time;
};

// "PID (NAME) STATE PARENT ...", the start time is the 22nd word; a name may
// hold spaces and parentheses.
std::optional<Ancestor> read_ancestor(pid_t pid) {
  const auto text = try_read_file(fmt::format("/proc/{}/stat", pid));
  if (!text || text->rfind(')') == std::string::npos) return std::nullopt;
  const auto words = split(text->substr(text->rfind(')') + 2), ' ');
  constexpr size_t kParent = 1;
  constexpr size_t kStart = 19;
  if (words.size() <= kStart) return std::nullopt;
  return Ancestor{
      .parent = static_cast<pid_t>(parse_integer(words[kParent]).value_or(0)),
      .start_time = words[kStart]};
}

bool has_variable(pid_t pid, const std::string& name) {
  const auto text = try_read_file(fmt::format("/proc/{}/environ", pid));
  if (!text) return false;
  for (const std::string& entry : split(*text, '\0')) {
    if (entry.starts_with(name + "=")) return true;
  }
  return false;
}

}  // namespace

std::optional<TaskPlace> find_task_place(const Environment& environment) {
  auto place = find_any_task(environment);
  if (place && place->size == 1) place.reset();
  return place;
}

std::string not_a_task_reason(const Environment& environment) {
  const auto tasks = find(environment, "SLURM_NTASKS");
  if (!tasks || parse_integer(*tasks).value_or(1) <= 1) return "";
  if (find_any_task(environment)) return "";
  return fmt::format(
      "SLURM_NTASKS={}, but srun did not start this process: it runs alone. "
      "Start it by 'srun PROGRAM ...' to have {} tasks, or use 'lockstep run'",
      *tasks, *tasks);
}

std::string name_task_parent(const std::string& rank_variable) {
  pid_t pid = getppid();
  while (has_variable(pid, rank_variable)) {
    const auto ancestor = read_ancestor(pid);
    if (!ancestor || ancestor->parent <= 0) break;
    pid = ancestor->parent;
  }
  const auto found = read_ancestor(pid);
  return fmt::format("process {} {}", pid, found ? found->start_time : "");
}

}  // namespace lockstep::base
