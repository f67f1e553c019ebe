#include "lockstep/comm/place.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"

namespace lockstep {
namespace {

const base::Environment kSecondOfTwo = {{"RANK", "1"},
                                        {"WORLD_SIZE", "2"},
                                        {"LOCAL_RANK", "1"},
                                        {"LOCAL_WORLD_SIZE", "2"},
                                        {"MASTER_ADDR", "127.0.0.1"},
                                        {"MASTER_PORT", "29500"}};

std::string error_of(base::Environment environment,
                     const base::Environment& changes) {
  for (const auto& [name, value] : changes) environment[name] = value;
  try {
    comm::place_from_environment(environment);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Place, ReadsTorchrunsVariables) {
  const comm::Place place = comm::place_from_environment(kSecondOfTwo);
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.world_size, 2);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.master_addr, "127.0.0.1");
  EXPECT_EQ(place.master_port, 29500);
  EXPECT_FALSE(place.launcher_hosts_store);
}

TEST(Place, WithoutVariablesIsAWorldOfOne) {
  const comm::Place place = comm::place_from_environment({});
  EXPECT_EQ(place.rank, 0);
  EXPECT_EQ(place.world_size, 1);
}

TEST(Place, AWorldOfOneNeedsNoAddress) {
  EXPECT_EQ(comm::place_from_environment({{"RANK", "0"}, {"WORLD_SIZE", "1"}})
                .world_size,
            1);
}

TEST(Place, LocalRankFollowsFromRankWhenUnset) {
  base::Environment environment = kSecondOfTwo;
  environment.erase("LOCAL_RANK");
  environment.erase("LOCAL_WORLD_SIZE");
  EXPECT_EQ(comm::place_from_environment(environment).local_rank, 1);
}

TEST(Place, NamesTheMissingVariable) {
  for (const char* name :
       {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    const std::string text = error_of(kSecondOfTwo, {{name, ""}});
    EXPECT_NE(
        text.find(std::string("environment variable ") + name + " is not set"),
        std::string::npos)
        << text;
    EXPECT_NE(text.find("lockstep run"), std::string::npos) << text;
  }
}

TEST(Place, NamesContradictions) {
  EXPECT_EQ(error_of(kSecondOfTwo, {{"RANK", "2"}}),
            "environment variable RANK=2 is out of range: it must be from 0 "
            "to 1");
  EXPECT_EQ(error_of(kSecondOfTwo, {{"WORLD_SIZE", "0"}}),
            "environment variable WORLD_SIZE=0 is out of range: it must be "
            "from 1 to 2147483647");
  EXPECT_EQ(error_of(kSecondOfTwo, {{"LOCAL_RANK", "2"}}),
            "environment variable LOCAL_RANK=2 is out of range: it must be "
            "from 0 to 1");
  EXPECT_EQ(error_of(kSecondOfTwo, {{"MASTER_PORT", "70000"}}),
            "environment variable MASTER_PORT=70000 is out of range: it must "
            "be from 1 to 65535");
  EXPECT_EQ(error_of(kSecondOfTwo, {{"RANK", "one"}}),
            "environment variable RANK='one' is not an integer; set it to one "
            "or unset it");
}

const base::Environment kSecondTask = {
    {"SLURM_JOB_ID", "1234"},      {"SLURM_STEP_ID", "0"},
    {"SLURM_PROCID", "1"},         {"SLURM_LOCALID", "1"},
    {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_NUM_NODES", "1"}};

TEST(Place, OfATaskOfSrunComesFromItsVariables) {
  const comm::Place place = comm::place_from_environment(kSecondTask);
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.world_size, 2);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_world_size, 2);
  EXPECT_EQ(place.master_addr, "127.0.0.1");
  EXPECT_FALSE(place.launcher_hosts_store);
}

TEST(Place, TasksOfOneStepMeetAtTheSamePortsAndOthersDoNot) {
  base::Environment first = kSecondTask;
  first["SLURM_PROCID"] = "0";
  first["SLURM_LOCALID"] = "0";
  base::Environment other_step = kSecondTask;
  other_step["SLURM_STEP_ID"] = "1";
  const comm::Place place = comm::place_from_environment(kSecondTask);
  EXPECT_EQ(comm::place_from_environment(first).store_ports, place.store_ports);
  EXPECT_EQ(comm::place_from_environment(first).store_secret,
            place.store_secret);
  EXPECT_NE(comm::place_from_environment(other_step).store_ports,
            place.store_ports);
  EXPECT_NE(comm::place_from_environment(other_step).store_secret,
            place.store_secret);
  for (const int port : place.store_ports) {
    EXPECT_GE(port, 10000);
    EXPECT_LT(port, 32000);
  }
}

TEST(Place, ThePortOfAJobScriptIsUsed) {
  base::Environment environment = kSecondTask;
  environment["MASTER_ADDR"] = "localhost";
  environment["MASTER_PORT"] = "29500";
  environment["WORLD_SIZE"] = "2";
  const comm::Place place = comm::place_from_environment(environment);
  EXPECT_EQ(place.master_addr, "localhost");
  EXPECT_EQ(place.store_ports, std::vector<int>{29500});
  EXPECT_EQ(error_of(environment, {{"WORLD_SIZE", "4"}}),
            "WORLD_SIZE=4 contradicts SLURM_STEP_NUM_TASKS=2; unset "
            "WORLD_SIZE, or set RANK for every process too");
}

TEST(Place, TorchrunsVariablesGoBeforeThoseOfSchedulers) {
  base::Environment environment = kSecondOfTwo;
  environment.insert(kSecondTask.begin(), kSecondTask.end());
  environment["SLURM_STEP_NUM_TASKS"] = "8";
  EXPECT_EQ(comm::place_from_environment(environment).world_size, 2);
  EXPECT_TRUE(comm::place_from_environment(environment).store_ports.empty());
}

base::Environment changed(base::Environment environment,
                          const base::Environment& changes) {
  for (const auto& [name, value] : changes) environment[name] = value;
  return environment;
}

const base::Environment kLastOfThreeNodes =
    changed(kSecondTask, {{"SLURM_STEP_NUM_NODES", "3"},
                          {"SLURM_STEP_NUM_TASKS", "6"},
                          {"SLURM_PROCID", "5"},
                          {"SLURM_NODEID", "2"},
                          {"SLURM_STEP_NODELIST", "n[08-09,11]"},
                          {"SLURM_STEP_TASKS_PER_NODE", "2(x3)"}});

TEST(Place, TasksOfSrunOnSeveralMachinesMeetOnTheFirst) {
  const comm::Place place = comm::place_from_environment(kLastOfThreeNodes);
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.world_size, 6);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_world_size, 2);
  EXPECT_EQ(place.master_addr, "n08");
  EXPECT_EQ(place.store_ports.size(), 16U);
  EXPECT_EQ(place.master_port, place.store_ports.front());
  EXPECT_FALSE(place.is_one_machine());
}

TEST(Place, AJobScriptsMasterBeatsTheNodeList) {
  const comm::Place place = comm::place_from_environment(
      changed(kLastOfThreeNodes, {{"MASTER_ADDR", "10.0.0.7"},
                                  {"MASTER_PORT", "29500"},
                                  {"SLURM_STEP_NODELIST", "n[unreadable"}}));
  EXPECT_EQ(place.master_addr, "10.0.0.7");
  EXPECT_EQ(place.master_port, 29500);
  EXPECT_NE(
      error_of(kLastOfThreeNodes, {{"SLURM_STEP_NODELIST", "n[unreadable"}})
          .find("set MASTER_ADDR and MASTER_PORT instead"),
      std::string::npos);
}

TEST(Place, TasksOfMpiOnSeveralMachinesNeedAMaster) {
  const base::Environment open_mpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                                      {"OMPI_COMM_WORLD_SIZE", "4"},
                                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                      {"PMIX_NAMESPACE", "3066167297"}};
  const base::Environment mpich = {{"PMI_RANK", "3"},
                                   {"PMI_SIZE", "4"},
                                   {"MPI_LOCALRANKID", "1"},
                                   {"MPI_LOCALNRANKS", "2"}};
  for (const base::Environment& environment : {open_mpi, mpich}) {
    for (const base::Environment& half : {base::Environment{},
                                          {{"MASTER_ADDR", "n1"}},
                                          {{"MASTER_PORT", "1"}}}) {
      const std::string text = error_of(environment, half);
      EXPECT_NE(text.find("not all on one machine"), std::string::npos) << text;
      EXPECT_NE(text.find("set MASTER_ADDR to the machine of rank 0 and "
                          "MASTER_PORT to a free port"),
                std::string::npos)
          << text;
    }
    const comm::Place place = comm::place_from_environment(changed(
        environment, {{"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}}));
    EXPECT_EQ(place.rank, 3);
    EXPECT_EQ(place.local_rank, 1);
    EXPECT_EQ(place.local_world_size, 2);
    EXPECT_EQ(place.master_addr, "n1");
    EXPECT_EQ(place.master_port, 29500);
  }
}

TEST(Place, PmiAloneNeedsLocalPlacesToo) {
  const base::Environment environment = {{"PMI_RANK", "3"},
                                         {"PMI_SIZE", "4"},
                                         {"MASTER_ADDR", "n1"},
                                         {"MASTER_PORT", "29500"}};
  EXPECT_NE(error_of(environment, {}).find("set LOCAL_RANK for every task"),
            std::string::npos);
  const comm::Place place = comm::place_from_environment(
      changed(environment, {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}}));
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_world_size, 2);
}

// As the training operator sets them in a worker of a PyTorchJob.
const base::Environment kPod = {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"},
                                {"RANK", "2"},
                                {"WORLD_SIZE", "3"},
                                {"MASTER_ADDR", "job-master-0"},
                                {"MASTER_PORT", "23456"},
                                {"PET_NNODES", "3"},
                                {"PET_NPROC_PER_NODE", "auto"}};

TEST(Place, APodOfAPyTorchJobRunsOneProcess) {
  const comm::Place place = comm::place_from_environment(kPod);
  EXPECT_EQ(place.rank, 2);
  EXPECT_EQ(place.world_size, 3);
  EXPECT_EQ(place.local_rank, 0);
  EXPECT_EQ(place.local_world_size, 1);
  EXPECT_EQ(place.master_addr, "job-master-0");
  EXPECT_TRUE(place.name_comes_later);
  EXPECT_NE(error_of(kPod, {{"PET_NPROC_PER_NODE", "4"}})
                .find("use 'lockstep run PROGRAM'"),
            std::string::npos);
}

TEST(Place, ALauncherInAPodSaysItself) {
  const comm::Place place =
      comm::place_from_environment(changed(kPod, {{"PET_NPROC_PER_NODE", "4"},
                                                  {"WORLD_SIZE", "12"},
                                                  {"RANK", "9"},
                                                  {"LOCAL_RANK", "1"},
                                                  {"LOCAL_WORLD_SIZE", "4"}}));
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_world_size, 4);
  EXPECT_FALSE(place.name_comes_later);
}

TEST(Place, RanksOfOnePodAreOneMachine) {
  for (const char* address : {"localhost", "127.0.0.1", "::1"}) {
    const comm::Place place =
        comm::place_from_environment(changed(kPod, {{"MASTER_ADDR", address}}));
    EXPECT_EQ(place.local_rank, 2) << address;
    EXPECT_TRUE(place.is_one_machine()) << address;
  }
}

TEST(Place, AnIndexedJobHasItsRankAsIndex) {
  const base::Environment environment =
      changed(kPod, {{"RANK", ""}, {"JOB_COMPLETION_INDEX", "1"}});
  const comm::Place place = comm::place_from_environment(environment);
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.world_size, 3);
  EXPECT_EQ(place.local_world_size, 1);
  EXPECT_EQ(
      comm::place_from_environment(changed(environment, {{"RANK", "2"}})).rank,
      2)
      << "torchrun's variables win";
  EXPECT_NE(error_of(environment, {{"WORLD_SIZE", ""}})
                .find("to the value of 'completions'"),
            std::string::npos);
  EXPECT_EQ(comm::place_from_environment({{"KUBERNETES_SERVICE_HOST", "x"},
                                          {"JOB_COMPLETION_INDEX", "1"}})
                .world_size,
            1)
      << "independent pods";
}

// srun --gpus-per-task 1 shows each task its own GPU, by whatever number.
TEST(Place, ATaskThatSeesOneGpuUsesIt) {
  base::Environment environment = kSecondTask;
  environment["CUDA_VISIBLE_DEVICES"] = "1";
  EXPECT_EQ(comm::place_from_environment(environment).local_rank, 0);
  environment["CUDA_VISIBLE_DEVICES"] = "0,1";
  EXPECT_EQ(comm::place_from_environment(environment).local_rank, 1);
}

TEST(Place, TimeoutComesFromEitherVariable) {
  EXPECT_EQ(base::collective_timeout_seconds({}), 600);
  EXPECT_EQ(base::collective_timeout_seconds({{"NCCL_TIMEOUT", "30"}}), 30);
  EXPECT_EQ(base::collective_timeout_seconds(
                {{"NCCL_TIMEOUT", "30"}, {"TORCH_DISTRIBUTED_TIMEOUT", "7.5"}}),
            7.5);
  EXPECT_THROW(base::collective_timeout_seconds({{"NCCL_TIMEOUT", "soon"}}),
               ConfigError);
  EXPECT_THROW(base::collective_timeout_seconds({{"NCCL_TIMEOUT", "-1"}}),
               ConfigError);
}

}  // namespace
}  // namespace lockstep
