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

TEST(Place, TorchrunsVariablesGoBeforeThoseOfSrun) {
  base::Environment environment = kSecondOfTwo;
  environment.insert(kSecondTask.begin(), kSecondTask.end());
  environment["SLURM_STEP_NUM_TASKS"] = "8";
  EXPECT_EQ(comm::place_from_environment(environment).world_size, 2);
  EXPECT_TRUE(comm::place_from_environment(environment).store_ports.empty());
}

TEST(Place, TasksOnSeveralMachinesAreRefused) {
  const std::string text =
      error_of(kSecondTask, {{"SLURM_STEP_NUM_NODES", "2"}});
  EXPECT_NE(text.find("SLURM_STEP_NUM_NODES=2"), std::string::npos) << text;
  EXPECT_NE(text.find("not supported yet"), std::string::npos) << text;
  EXPECT_NE(text.find("lockstep run --nproc-per-node N"), std::string::npos);
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
