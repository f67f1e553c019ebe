#include "lockstep/launch/worker_environment.h"

#include <gtest/gtest.h>

#include "unit/launch/plan_for.h"

namespace lockstep {
namespace {

using testing::plan_for;

base::Environment worker_of(const launch::Plan& plan, int rank) {
  return launch::worker_environment(
      plan, {.local_rank = rank,
             .world = launch::world_of_one_node(plan, 1, 4567),
             .status_fd = 9,
             .secret_fd = 11,
             .error_file = "/logs/error.json"});
}

TEST(WorkerEnvironment, HoldsAllVariablesOfTorchrun) {
  const base::Environment expected = {
      {"LOCAL_RANK", "2"},
      {"RANK", "2"},
      {"GROUP_RANK", "0"},
      {"ROLE_RANK", "2"},
      {"ROLE_NAME", "trainer"},
      {"LOCAL_WORLD_SIZE", "4"},
      {"WORLD_SIZE", "4"},
      {"GROUP_WORLD_SIZE", "1"},
      {"ROLE_WORLD_SIZE", "4"},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", "4567"},
      {"TORCHELASTIC_RESTART_COUNT", "1"},
      {"TORCHELASTIC_MAX_RESTARTS", "3"},
      {"TORCHELASTIC_RUN_ID", "job"},
      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
      {"TORCHELASTIC_ERROR_FILE", "/logs/error.json"},
      {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
      {"OMP_NUM_THREADS", "2"},
      {"OMP_WAIT_POLICY", "PASSIVE"},
      {"GLOO_SOCKET_IFNAME", "lo"},
      {"LOCKSTEP_STATUS_FD", "9"},
      {"LOCKSTEP_SECRET_FD", "11"},
      {"LOCKSTEP_LAUNCHER", "1"},
      {"LOCKSTEP_JOB", "unique"},
      {"PATH", "/usr/bin:/bin"},
      {"MINE", "x"}};
  launch::Plan plan = plan_for({"--nproc=4", "--role=trainer", "--rdzv-id=job",
                                "--max-restarts=3", "true"},
                               {{"MINE", "x"}});
  plan.job = "unique";
  EXPECT_EQ(worker_of(plan, 2), expected);
}

TEST(WorkerEnvironment, OfAnElasticJobSaysSo) {
  const base::Environment outer = {{"LOCKSTEP_ELASTIC", "1:2"},
                                   {"LOCKSTEP_GENERATION", "7"}};
  const auto elastic = worker_of(
      plan_for({"--nnodes=2:3", "--rdzv-endpoint=127.0.0.1", "true"}, outer),
      0);
  EXPECT_EQ(elastic.at("LOCKSTEP_ELASTIC"), "2:3");
  EXPECT_EQ(elastic.at("LOCKSTEP_GENERATION"), "1");
  EXPECT_EQ(elastic.at("TORCHELASTIC_RESTART_COUNT"), "1");
  const auto other = worker_of(plan_for({"true"}, outer), 0);
  EXPECT_FALSE(other.contains("LOCKSTEP_ELASTIC"));
  EXPECT_FALSE(other.contains("LOCKSTEP_GENERATION"));
}

// The second of three nodes with 2, 3 and 2 processes.
launch::JobWorld second_node() {
  return {.attempt = 4,
          .num_restarts = 1,
          .generation = 2,
          .node = 1,
          .num_nodes = 3,
          .first_rank = 2,
          .num_ranks = 7,
          .first_role_rank = 1,
          .role_size = 6,
          .master_addr = "10.0.0.1",
          .master_port = 4567,
          .store_secret = "secret",
          .job = "unique"};
}

TEST(WorldVariables, AreThoseThatAProcessMaySeeChange) {
  base::Environment expected = {{"RANK", "4"},
                                {"GROUP_RANK", "1"},
                                {"ROLE_RANK", "3"},
                                {"WORLD_SIZE", "7"},
                                {"ROLE_WORLD_SIZE", "6"},
                                {"GROUP_WORLD_SIZE", "3"},
                                {"MASTER_ADDR", "10.0.0.1"},
                                {"MASTER_PORT", "4567"},
                                {"TORCHELASTIC_RESTART_COUNT", "4"}};
  const launch::Plan fixed = plan_for({"--nproc=3", "true"});
  EXPECT_EQ(launch::world_variables(fixed, second_node(), 2), expected);
  expected["LOCKSTEP_GENERATION"] = "4";
  const launch::Plan elastic = plan_for(
      {"--nproc=3", "--nnodes=1:3", "--rdzv-endpoint=127.0.0.1", "true"});
  EXPECT_EQ(launch::world_variables(elastic, second_node(), 2), expected);
}

TEST(WorldVariables, AreAsAProcessThatStartsInThisWorldHasThem) {
  const launch::Plan plan = plan_for(
      {"--nproc=3", "--nnodes=1:3", "--rdzv-endpoint=127.0.0.1", "true"});
  const auto started = launch::worker_environment(
      plan, {.local_rank = 2, .world = second_node(), .error_file = {}});
  for (const auto& [name, value] :
       launch::world_variables(plan, second_node(), 2)) {
    EXPECT_EQ(started.at(name), value) << name;
  }
}

TEST(WorkerEnvironment, GlooStaysOnTheLoopbackInterfaceUnlessAskedOtherwise) {
  const launch::Plan chosen =
      plan_for({"true"}, {{"GLOO_SOCKET_IFNAME", "eth0"}});
  EXPECT_EQ(worker_of(chosen, 0).at("GLOO_SOCKET_IFNAME"), "eth0");
  launch::Plan elsewhere = plan_for({"true"});
  elsewhere.master_addr = "192.0.2.1";
  EXPECT_EQ(worker_of(elsewhere, 0).count("GLOO_SOCKET_IFNAME"), 0u);
}

TEST(WorkerEnvironment, TheUsersNcclSettingStays) {
  const launch::Plan plan =
      plan_for({"true"}, {{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "3"}});
  EXPECT_EQ(worker_of(plan, 0).at("TORCH_NCCL_ASYNC_ERROR_HANDLING"), "3");
}

TEST(WorkerEnvironment, SharedGpusLookLikeDifferentHosts) {
  const launch::Plan plan =
      plan_for({"--nproc=2", "--share-gpus", "true"}, {}, 1);
  const base::Environment first = worker_of(plan, 0);
  const base::Environment second = worker_of(plan, 1);
  EXPECT_NE(first.at("NCCL_HOSTID"), second.at("NCCL_HOSTID"));
  EXPECT_EQ(first.at("NCCL_SOCKET_IFNAME"), "lo");
  EXPECT_EQ(first.at("LOCKSTEP_SHARE_GPUS"), "1");
  const launch::Plan named = plan_for({"--nproc=2", "--share-gpus", "true"},
                                      {{"NCCL_SOCKET_IFNAME", "eth0"}}, 1);
  EXPECT_EQ(worker_of(named, 0).at("NCCL_SOCKET_IFNAME"), "eth0");
}

TEST(WorkerEnvironment, EnoughGpusAreNotShared) {
  const launch::Plan plan =
      plan_for({"--nproc=2", "--share-gpus", "true"}, {}, 2);
  EXPECT_EQ(worker_of(plan, 0).count("NCCL_HOSTID"), 0u);
}

TEST(WorkerEnvironment, VirtualLocalRankShowsOneGpu) {
  const launch::Plan plan =
      plan_for({"--nproc=2", "--virtual-local-rank", "true"},
               {{"CUDA_VISIBLE_DEVICES", "3,1"}}, 4);
  const base::Environment second = worker_of(plan, 1);
  EXPECT_EQ(second.at("CUDA_VISIBLE_DEVICES"), "1");
  EXPECT_EQ(second.at("LOCAL_RANK"), "0");
  EXPECT_EQ(second.at("RANK"), "1");
}

TEST(WorkerEnvironment, TellsTheWidthOfItsOwnTerminalOnly) {
  const launch::Plan plan =
      plan_for({"true"}, {{"LOCKSTEP_TERMINAL_COLUMNS", "80"}});
  EXPECT_EQ(worker_of(plan, 0).count("LOCKSTEP_TERMINAL_COLUMNS"), 0u);
  EXPECT_EQ(launch::worker_environment(
                plan, {.terminal_columns = 97, .error_file = {}})
                .at("LOCKSTEP_TERMINAL_COLUMNS"),
            "97");
}

TEST(LinePrefix, FollowsTheTemplate) {
  EXPECT_EQ(launch::line_prefix(plan_for({"true"}), 1, 5), "[default1]:");
  EXPECT_EQ(
      launch::line_prefix(plan_for({"--role=t", "true"},
                                   {{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
                                     "${role_name}/${rank}/${local_rank} "}}),
                          2, 6),
      "t/6/2 ");
}

}  // namespace
}  // namespace lockstep
