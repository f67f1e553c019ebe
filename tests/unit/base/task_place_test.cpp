#include "lockstep/base/task_place.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "support/process.h"

namespace lockstep {
namespace {

// As srun of Slurm 23 sets them for task 1 of `srun -n 2`.
const base::Environment kSlurm = {
    {"SLURM_JOB_ID", "1234"},      {"SLURM_STEP_ID", "0"},
    {"SLURM_PROCID", "1"},         {"SLURM_LOCALID", "1"},
    {"SLURM_NTASKS", "2"},         {"SLURM_STEP_NUM_TASKS", "2"},
    {"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_NNODES", "1"}};

// As mpirun of Open MPI 4 does.
const base::Environment kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                                    {"OMPI_COMM_WORLD_SIZE", "2"},
                                    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                    {"PMIX_NAMESPACE", "3066167297"}};

// As mpiexec of MPICH 4 and mpirun of Intel MPI do.
const base::Environment kHydra = {{"PMI_RANK", "1"},
                                  {"PMI_SIZE", "2"},
                                  {"PMI_FD", "9"},
                                  {"MPI_LOCALRANKID", "1"},
                                  {"MPI_LOCALNRANKS", "2"}};

base::Environment changed(base::Environment environment,
                          const base::Environment& changes) {
  for (const auto& [name, value] : changes) environment[name] = value;
  return environment;
}

void expect_second_of_two(const base::Environment& environment) {
  const auto place = base::find_task_place(environment);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 1);
  EXPECT_EQ(place->size, 2);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->not_one_machine, "");
}

TEST(TaskPlace, IsReadFromEachLauncher) {
  expect_second_of_two(kSlurm);
  EXPECT_EQ(base::find_task_place(kSlurm)->job, "slurm 1234.0");
  expect_second_of_two(kOpenMpi);
  EXPECT_EQ(base::find_task_place(kOpenMpi)->job, "3066167297");
  expect_second_of_two(kHydra);
  EXPECT_EQ(base::find_task_place(kHydra)->job, "");
  expect_second_of_two({{"PMI_RANK", "1"},
                        {"PMI_SIZE", "2"},
                        {"PMI_LOCAL_RANK", "1"},
                        {"PMI_LOCAL_SIZE", "2"}});
  expect_second_of_two({{"MV2_COMM_WORLD_RANK", "1"},
                        {"MV2_COMM_WORLD_SIZE", "2"},
                        {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
                        {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}});
}

TEST(TaskPlace, OlderVariablesOfSlurmServeToo) {
  base::Environment environment = kSlurm;
  environment.erase("SLURM_STEP_NUM_TASKS");
  environment.erase("SLURM_STEP_NUM_NODES");
  expect_second_of_two(environment);
}

// srun --mpi=pmi2 sets PMI_RANK and PMI_SIZE without the local ones.
TEST(TaskPlace, SrunIsRecognisedBehindItsPmi) {
  const auto environment =
      changed(kSlurm, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  expect_second_of_two(environment);
  EXPECT_EQ(base::find_task_place(environment)->launcher, "srun");
}

// mpirun starts its daemons by srun, one task per node.
TEST(TaskPlace, MpirunInsideOfAnAllocationCounts) {
  expect_second_of_two(changed(kSlurm, kOpenMpi));
}

TEST(TaskPlace, OneProcessIsNoTask) {
  EXPECT_FALSE(base::find_task_place({}));
  EXPECT_FALSE(base::find_task_place(
      {{"SLURM_JOB_ID", "1234"}, {"SLURM_NTASKS", "4"}, {"SLURM_NNODES", "2"}}))
      << "the shell of salloc";
  EXPECT_FALSE(base::find_task_place({{"SLURM_JOB_ID", "1234"},
                                      {"SLURM_NTASKS", "4"},
                                      {"SLURM_PROCID", "0"},
                                      {"SLURM_LOCALID", "0"}}))
      << "the script of sbatch";
  EXPECT_FALSE(base::find_task_place({{"SLURM_JOB_ID", "1234"},
                                      {"SLURM_STEP_ID", "4294967290"},
                                      {"SLURM_PROCID", "0"},
                                      {"SLURM_LOCALID", "0"},
                                      {"SLURM_NTASKS", "4"},
                                      {"SLURM_STEP_NUM_TASKS", "1"}}))
      << "the interactive step of salloc";
  EXPECT_FALSE(base::find_task_place({{"OMPI_COMM_WORLD_RANK", "0"},
                                      {"OMPI_COMM_WORLD_SIZE", "1"},
                                      {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}));
}

// As srun of Slurm 22 sets them for the last task of `srun -N 3 -n 5`.
const base::Environment kSlurmNodes = {{"SLURM_JOB_ID", "1234"},
                                       {"SLURM_STEP_ID", "0"},
                                       {"SLURM_PROCID", "4"},
                                       {"SLURM_LOCALID", "0"},
                                       {"SLURM_NODEID", "2"},
                                       {"SLURM_STEP_NUM_TASKS", "5"},
                                       {"SLURM_STEP_NUM_NODES", "3"},
                                       {"SLURM_STEP_NODELIST", "n[1-3]"},
                                       {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                                       {"SLURM_NTASKS", "8"},
                                       {"SLURM_NNODES", "4"},
                                       {"SLURM_JOB_NODELIST", "n[1-4]"}};

// As mpirun of Open MPI 4 and mpiexec of MPICH 4 do on the second of two nodes.
const base::Environment kOpenMpiNodes = changed(
    kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}});
const base::Environment kHydraNodes =
    changed(kHydra, {{"PMI_SIZE", "4"}, {"PMI_RANK", "3"}});

struct NodesCase {
  base::Environment environment;
  int rank;
  int size;
  int local_rank;
  int local_size;
  std::string reason;
  std::string hosts;
};

TEST(TaskPlace, OnSeveralMachinesIsRead) {
  const std::vector<NodesCase> cases = {
      {kSlurmNodes, 4, 5, 0, 1, "SLURM_STEP_NUM_NODES=3", "n[1-3]"},
      {changed(kSlurmNodes, {{"SLURM_NODEID", "1"},
                             {"SLURM_PROCID", "3"},
                             {"SLURM_LOCALID", "1"}}),
       3, 5, 1, 2, "SLURM_STEP_NUM_NODES=3", "n[1-3]"},
      {changed(kSlurmNodes, {{"SLURM_STEP_NUM_TASKS", ""},
                             {"SLURM_STEP_NUM_NODES", ""},
                             {"SLURM_STEP_NODELIST", ""},
                             {"SLURM_STEP_TASKS_PER_NODE", ""},
                             {"SLURM_TASKS_PER_NODE", "2(x4)"}}),
       4, 8, 0, 2, "SLURM_NNODES=4", "n[1-4]"},
      {kOpenMpiNodes, 3, 4, 1, 2,
       "OMPI_COMM_WORLD_LOCAL_SIZE=2 of OMPI_COMM_WORLD_SIZE=4", ""},
      {kHydraNodes, 3, 4, 1, 2, "MPI_LOCALNRANKS=2 of PMI_SIZE=4", ""},
      {{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}},
       1,
       2,
       0,
       0,
       "no MPI_LOCALNRANKS",
       ""},
  };
  for (const NodesCase& known : cases) {
    const auto place = base::find_task_place(known.environment);
    ASSERT_TRUE(place) << known.reason;
    EXPECT_EQ(place->rank, known.rank) << known.reason;
    EXPECT_EQ(place->size, known.size) << known.reason;
    EXPECT_EQ(place->local_rank, known.local_rank) << known.reason;
    EXPECT_EQ(place->local_size, known.local_size) << known.reason;
    EXPECT_EQ(place->not_one_machine, known.reason);
    EXPECT_EQ(place->hosts, known.hosts) << known.reason;
  }
}

TEST(TaskPlace, OneProcessOfManyTasksIsExplained) {
  const base::Environment script = {
      {"SLURM_JOB_ID", "1234"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}};
  EXPECT_EQ(base::not_a_task_reason(script),
            "SLURM_NTASKS=4, but srun did not start this process: it runs "
            "alone. Start it by 'srun PROGRAM ...' to have 4 tasks, or use "
            "'lockstep run'");
  EXPECT_EQ(base::not_a_task_reason(changed(script, {{"SLURM_NTASKS", "1"}})),
            "");
  EXPECT_EQ(base::not_a_task_reason(kSlurm), "");
  EXPECT_EQ(base::not_a_task_reason({}), "");
}

TEST(TaskPlace, ContradictionsAreNamed) {
  EXPECT_THROW(base::find_task_place(changed(kSlurm, {{"SLURM_PROCID", "2"}})),
               ConfigError);
  EXPECT_THROW(base::find_task_place(changed(kHydra, {{"PMI_SIZE", "two"}})),
               ConfigError);
  EXPECT_THROW(
      base::find_task_place(changed(kSlurmNodes, {{"SLURM_NODEID", "3"}})),
      ConfigError);
  EXPECT_THROW(
      base::find_task_place(changed(kSlurmNodes, {{"SLURM_LOCALID", "1"}})),
      ConfigError);
  EXPECT_THROW(base::find_task_place(changed(
                   kSlurmNodes, {{"SLURM_STEP_TASKS_PER_NODE", "many"}})),
               ConfigError);
}

// This test again, below wrappers that are part of a task.
TEST(TaskPlace, TheProcessAboveAllTasksIsFoundThroughWrappers) {
  if (std::getenv("LOCKSTEP_TEST_PRINT_PARENT") != nullptr) {
    std::printf("parent: %s\n", base::name_task_parent("PMI_RANK").c_str());
    return;
  }
  const std::string self =
      std::filesystem::read_symlink("/proc/self/exe").string() +
      " --gtest_filter=TaskPlace.TheProcessAboveAllTasksIsFoundThroughWrappers";
  const auto result = testing::run(
      {"/bin/sh", "-c",
       "export LOCKSTEP_TEST_PRINT_PARENT=1; echo shell $$; PMI_RANK=0 " +
           self + "; PMI_RANK=1 sh -c '" + self + "; true'"},
      {.environment = {}, .folder = "", .ignored_signals = {}});
  const auto shell = result.out.substr(6, result.out.find('\n') - 6);
  const std::string line = "parent: process " + shell + " ";
  const auto first = result.out.find(line);
  ASSERT_NE(first, std::string::npos) << result.out;
  EXPECT_NE(result.out.find(line, first + 1), std::string::npos) << result.out;
}

}  // namespace
}  // namespace lockstep
