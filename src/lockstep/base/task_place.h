// Where srun, mpirun or mpiexec put a process: its place among the tasks of one
// job, from the variables that they set.
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/environment.h"

namespace lockstep::base {

struct TaskPlace {
  std::string launcher;       // "srun"
  std::string rank_variable;  // "SLURM_PROCID"
  std::string size_variable;  // "SLURM_STEP_NUM_TASKS"
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 0;  // tasks on this machine; 0: no variable shows it
  // Why the tasks may be on several machines; empty: all are on this machine.
  std::string not_one_machine;
  // Slurm's list of the machines, in its short form (expand_host_list); task 0
  // is on the first one. Empty: no variable holds it.
  std::string hosts;
  // The same text for all tasks of the job, and for no other job that runs on
  // this machine. Empty: no variable holds one.
  std::string job;
};

// No value when nothing but one process was started. A batch script of Slurm
// and a shell inside an allocation are such ones: only srun makes tasks. Throws
// ConfigError when the variables contradict each other.
std::optional<TaskPlace> find_task_place(const Environment& environment);

// Why a process of a Slurm job is not one of its tasks although the job has
// several: it is the batch script or a shell of salloc, and only srun starts
// tasks. Empty when that is not the case.
std::string not_a_task_reason(const Environment& environment);

// For a job whose variables name none: the process above all tasks, as text. A
// wrapper around a task has `rank_variable` in its environment too.
std::string name_task_parent(const std::string& rank_variable);

}  // namespace lockstep::base
