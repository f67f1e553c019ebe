#include "lockstep/launch/plan.h"

#include <gtest/gtest.h>

#include "lockstep/base/cpu_features.h"
#include "lockstep/error.h"
#include "support/messages.h"
#include "unit/launch/plan_for.h"

namespace lockstep {
namespace {

using Arguments = std::vector<std::string>;
using testing::contains;
using testing::plan_for;

std::string plan_refusal(const Arguments& arguments,
                         const base::Environment& environment = {},
                         int gpus = 0) {
  return testing::refusal<ConfigError>(
      [&] { plan_for(arguments, environment, gpus); });
}

TEST(Plan, CountsProcesses) {
  EXPECT_EQ(plan_for({"true"}).num_processes, 1);
  EXPECT_EQ(plan_for({"--nproc=3", "true"}).num_processes, 3);
  EXPECT_EQ(plan_for({"--nproc=cpu", "true"}).num_processes, 8);
  EXPECT_EQ(plan_for({"--nproc=auto", "true"}).num_processes, 8);
  EXPECT_EQ(plan_for({"--nproc=auto", "true"}, {}, 4).num_processes, 4);
  EXPECT_EQ(
      plan_for({"--nproc=gpu", "true"}, {{"CUDA_VISIBLE_DEVICES", "1"}}, 4)
          .num_processes,
      1);
}

TEST(Plan, LetsThreadsOfWorkersWaitWithoutSpinning) {
  EXPECT_EQ(plan_for({"true"}).environment.at("OMP_WAIT_POLICY"), "PASSIVE");
  EXPECT_EQ(plan_for({"true"}, {{"OMP_WAIT_POLICY", "ACTIVE"}})
                .environment.at("OMP_WAIT_POLICY"),
            "ACTIVE");
}

TEST(Plan, KeepsWorkersOffUnusableAmxAndSaysSo) {
  const launch::Plan plan = launch::make_plan(
      launch::parse_run_options(Arguments{"/bin/true"}, {}), {},
      {.count_gpus = [] { return 0; },
       .count_cores = [] { return 8; },
       .cpuid = [](uint32_t leaf, uint32_t) -> base::CpuidRegisters {
         if (leaf == 0) return {.eax = 0x1C};
         return {.edx = leaf == 7 ? uint32_t{1} << 24 : 0};
       }});
  EXPECT_EQ(plan.environment.at("ONEDNN_MAX_CPU_ISA"), "AVX512_CORE_FP16");
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_TRUE(contains(plan.notes[0], "announces AMX"));
}

TEST(Plan, GpuWithoutGpuIsRefused) {
  EXPECT_TRUE(
      contains(plan_refusal({"--nproc=gpu", "true"}), "no GPU is visible"));
}

TEST(Plan, NumaBindingWithoutGpuIsRefused) {
  EXPECT_EQ(plan_refusal({"--numa-binding=node", "true"}),
            "--numa-binding needs a visible GPU");
  EXPECT_EQ(plan_refusal({"--numa-binding=node", "true"},
                         {{"CUDA_VISIBLE_DEVICES", "-1"}}, 4),
            "--numa-binding needs a visible GPU (CUDA_VISIBLE_DEVICES=-1; this "
            "machine has 4 GPUs (0 to 3))");
  EXPECT_TRUE(plan_for({"true"}, {}, 4).worker_cpus.empty());
}

TEST(Plan, MoreProcessesThanGpusAreRefusedWithTheFix) {
  const std::string text = plan_refusal(
      {"--nproc=8", "true"}, {{"CUDA_VISIBLE_DEVICES", "0,1,2,3"}}, 8);
  EXPECT_EQ(text,
            "8 processes were asked for but 4 GPUs are visible "
            "(CUDA_VISIBLE_DEVICES=0,1,2,3; this machine has 8 GPUs (0 to "
            "7)); use --nproc-per-node 4, or --share-gpus to put several "
            "processes on one GPU");
  EXPECT_EQ(
      plan_for({"--nproc=8", "--share-gpus", "true"}, {}, 4).num_processes, 8);
  EXPECT_EQ(plan_for({"--nproc=64", "true"}).num_processes, 64);
}

TEST(Plan, AVariableThatShowsNoneOfTheGpusIsRefused) {
  for (const char* nproc :
       {"--nproc=4", "--nproc=1", "--nproc=auto", "--nproc=gpu"}) {
    EXPECT_EQ(
        plan_refusal({nproc, "true"}, {{"CUDA_VISIBLE_DEVICES", "4,5,6,7"}}, 2),
        "no GPU is visible: CUDA_VISIBLE_DEVICES=4,5,6,7 shows none, and "
        "this machine has 2 GPUs (0 and 1); name some of them, or make "
        "the variable empty (CUDA_VISIBLE_DEVICES=) to run on CPUs")
        << nproc;
  }
  EXPECT_TRUE(contains(
      plan_refusal({"--nproc=2", "true"}, {{"CUDA_VISIBLE_DEVICES", "1,2"}}, 2),
      "1 GPU is visible (CUDA_VISIBLE_DEVICES=1,2; this machine has 2 GPUs"));
  EXPECT_TRUE(contains(
      plan_refusal({"lockstep-worker"}, {{"CUDA_VISIBLE_DEVICES", "7"}}, 1),
      "or pass --device cpu"));
  // Nothing to miss, nothing to run.
  EXPECT_EQ(plan_refusal({"true"}, {{"CUDA_VISIBLE_DEVICES", "4"}}, 0),
            "accepted");
  EXPECT_EQ(
      plan_refusal({"true", "--help"}, {{"CUDA_VISIBLE_DEVICES", "4"}}, 2),
      "accepted");
}

TEST(Plan, WhoeverMeansCpusMayHideTheGpus) {
  for (const char* setting : {"", "-1", "NoDevFiles"}) {
    const launch::Plan plan = plan_for(
        {"--nproc=4", "true"},
        {{"CUDA_VISIBLE_DEVICES", setting}, {"OMP_NUM_THREADS", "1"}}, 2);
    EXPECT_EQ(plan.num_processes, 4);
    EXPECT_EQ(plan.notes,
              Arguments{std::string("CUDA_VISIBLE_DEVICES=") + setting +
                        " hides 2 GPUs (0 and 1): this job runs on CPUs"});
  }
  EXPECT_TRUE(
      plan_for({"true"}, {{"CUDA_VISIBLE_DEVICES", ""}}, 0).notes.empty());
}

TEST(Plan, DeviceCpuMeansCpus) {
  const base::Environment wrong = {{"CUDA_VISIBLE_DEVICES", "7"}};
  for (const Arguments& flag :
       std::vector<Arguments>{{"--device", "cpu"}, {"--device=cpu"}}) {
    Arguments arguments = {"--nproc=4", "true"};
    arguments.insert(arguments.end(), flag.begin(), flag.end());
    EXPECT_EQ(plan_for(arguments, {}, 2).num_processes, 4);
    EXPECT_EQ(plan_for(arguments, wrong, 2).num_processes, 4);
  }
  EXPECT_NE(plan_refusal({"true", "--device=cuda"}, wrong, 2), "accepted");
  EXPECT_EQ(plan_refusal({"--nproc=cpu", "true"}, wrong, 2), "accepted");
}

TEST(Plan, ThePortInTheWorkersFlagsIsTaken) {
  const Arguments worker = {"/bin/true", "--master_port", "12356"};
  EXPECT_FALSE(plan_for(worker).master_port);
  launch::RunOptions options = launch::parse_run_options(worker, {});
  const auto port_of = [](const launch::RunOptions& given) {
    return launch::make_plan(given, {{"PATH", "/bin"}},
                             {.count_gpus = [] { return 0; },
                              .count_cores = [] { return 8; }})
        .master_port;
  };
  options.is_recipe = true;
  EXPECT_EQ(port_of(options), 12356);
  options.master_port = 2000;
  EXPECT_EQ(port_of(options), 2000);
}

TEST(Plan, MoreNodesAreAllowedAndMissed) {
  const launch::Plan plan = plan_for({"--nnodes=1:2", "true"});
  EXPECT_EQ(plan.notes,
            Arguments{"--nnodes 1:2: this job runs on this node alone; other "
                      "nodes can join with --rdzv-endpoint HOST"});
  EXPECT_TRUE(plan_for({"--nnodes=1:2", "--rdzv-endpoint=127.0.0.1", "true"})
                  .notes.empty());
}

TEST(Plan, DevNullAsLogFolderMeansNoFiles) {
  const launch::Plan plan =
      plan_for({"--log-dir=/dev/null", "-r3", "-t1", "true"});
  EXPECT_TRUE(plan.options.log_dir.empty());
  EXPECT_TRUE(plan.options.redirects.is_empty());
  EXPECT_TRUE(plan.options.tee.is_empty());
}

TEST(Plan, TimersOverAFileAreRefused) {
  EXPECT_TRUE(contains(
      plan_refusal({"true"}, {{"TORCHELASTIC_ENABLE_FILE_TIMER", "1"}}),
      "TORCHELASTIC_ENABLE_FILE_TIMER=1 is not supported"));
  EXPECT_EQ(plan_refusal({"true"}, {{"TORCHELASTIC_ENABLE_FILE_TIMER", "0"}}),
            "accepted");
}

TEST(Plan, AProgramThatExplainsItselfRunsOnce) {
  EXPECT_EQ(plan_for({"--nproc=8", "true", "--help"}).num_processes, 1);
  EXPECT_EQ(plan_for({"--nproc=8", "true", "x", "--help"}).num_processes, 1);
  EXPECT_EQ(plan_for({"--nproc=8", "true", "-h"}).num_processes, 1);
  // Among others -h means what the program wants it to mean.
  EXPECT_EQ(plan_for({"--nproc=8", "true", "-h", "512"}).num_processes, 8);
}

TEST(Plan, CoresAreSharedBetweenProcesses) {
  const launch::Plan plan = plan_for({"--nproc=3", "true"});
  EXPECT_EQ(plan.environment.at("OMP_NUM_THREADS"), "2");
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_TRUE(contains(plan.notes[0], "OMP_NUM_THREADS=2"));
  EXPECT_EQ(plan_for({"--nproc=32", "true"}).environment.at("OMP_NUM_THREADS"),
            "1");
}

TEST(Plan, ThreadsOfTheUserAndOfALoneProcessStay) {
  EXPECT_EQ(plan_for({"true"}).environment.count("OMP_NUM_THREADS"), 0u);
  const launch::Plan plan =
      plan_for({"--nproc=2", "true"}, {{"OMP_NUM_THREADS", "5"}});
  EXPECT_EQ(plan.environment.at("OMP_NUM_THREADS"), "5");
  EXPECT_TRUE(plan.notes.empty());
}

TEST(Plan, NoPortMeansAFreeOne) {
  for (const Arguments& arguments : std::vector<Arguments>{
           {"true"},
           {"--master-port=0", "true"},
           {"--standalone", "--master-port=5", "true"},
           {"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "true"}}) {
    const launch::Plan plan = plan_for(arguments);
    EXPECT_FALSE(plan.master_port);
    EXPECT_EQ(plan.master_addr, "127.0.0.1");
  }
}

TEST(Plan, FlagBeatsPetVariableBeatsMasterPort) {
  const base::Environment both = {{"PET_MASTER_PORT", "2000"},
                                  {"MASTER_PORT", "3000"}};
  EXPECT_EQ(plan_for({"true"}, {{"MASTER_PORT", "3000"}}).master_port, 3000);
  EXPECT_EQ(plan_for({"true"}, both).master_port, 2000);
  EXPECT_EQ(plan_for({"--master-port=1500", "true"}, both).master_port, 1500);
  EXPECT_EQ(
      plan_for({"--rdzv-endpoint=127.0.0.1:1600", "true"}, both).master_port,
      1600);
}

TEST(Plan, ThePortOfAnOuterLauncherIsNoWish) {
  EXPECT_FALSE(
      plan_for({"true"}, {{"MASTER_PORT", "3000"}, {"LOCKSTEP_LAUNCHER", "1"}})
          .master_port);
}

TEST(Plan, ALauncherPerRankOfAnotherOneIsRefused) {
  const base::Environment torchrun = {
      {"TORCHELASTIC_RUN_ID", "none"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}};
  const std::string text = plan_refusal({"true"}, torchrun);
  EXPECT_TRUE(contains(text, "rank 1 of 2 of torchrun")) << text;
  EXPECT_TRUE(contains(text, "lockstep-worker train")) << text;
  EXPECT_TRUE(contains(text, "--standalone")) << text;
  EXPECT_TRUE(contains(plan_refusal({"true"}, {{"LOCKSTEP_LAUNCHER", "1"},
                                               {"RANK", "0"},
                                               {"WORLD_SIZE", "4"}}),
                       "rank 0 of 4 of lockstep run"));
  EXPECT_TRUE(
      contains(plan_refusal({"true"}, {{"OMPI_COMM_WORLD_RANK", "0"},
                                       {"OMPI_COMM_WORLD_SIZE", "2"},
                                       {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
               "rank 0 of 2 of mpirun"));
}

TEST(Plan, ASeparateJobInsideARankIsAskedForByStandalone) {
  EXPECT_EQ(plan_for({"--standalone", "true"}, {{"TORCHELASTIC_RUN_ID", "none"},
                                                {"RANK", "1"},
                                                {"WORLD_SIZE", "2"}})
                .num_processes,
            1);
}

TEST(Plan, ALauncherInALoneProcessOfAnotherOneIsFine) {
  for (const base::Environment& environment : std::vector<base::Environment>{
           {{"TORCHELASTIC_RUN_ID", "none"}, {"WORLD_SIZE", "1"}},
           // Leftovers of a shell, not of a launcher.
           {{"RANK", "0"}, {"WORLD_SIZE", "2"}},
           // The script of sbatch --ntasks 4.
           {{"SLURM_JOB_ID", "7"},
            {"SLURM_PROCID", "0"},
            {"SLURM_NTASKS", "4"}}}) {
    EXPECT_EQ(plan_for({"true"}, environment).num_processes, 1);
  }
}

TEST(Plan, AnAddressOfAnotherMachineIsRefused) {
  EXPECT_TRUE(contains(plan_refusal({"--master-addr=192.0.2.1", "true"}),
                       "is not an address of this machine"));
}

TEST(Plan, TimeoutGoesToBothVariables) {
  const launch::Plan plan =
      plan_for({"--timeout=30", "true"}, {{"NCCL_TIMEOUT", "9"}});
  EXPECT_EQ(plan.timeout_seconds, 30);
  EXPECT_EQ(plan.environment.at("TORCH_DISTRIBUTED_TIMEOUT"), "30");
  EXPECT_EQ(plan.environment.at("NCCL_TIMEOUT"), "30");
  EXPECT_EQ(plan_for({"true"}, {{"NCCL_TIMEOUT", "9"}}).timeout_seconds, 9);
}

TEST(Plan, RecoveryFromMemoryIsForProgramsOfLockstep) {
  EXPECT_TRUE(plan_for({"--recover=memory", "true"}).recovers_in_memory);
  EXPECT_FALSE(plan_for({"--recover=restart", "true"}).recovers_in_memory);
  EXPECT_FALSE(plan_for({"--nproc=2", "true"}).recovers_in_memory);
  EXPECT_TRUE(contains(plan_refusal({"--recover=disk", "true"}),
                       "--recover 'disk' must be memory or restart"));
  EXPECT_TRUE(contains(plan_refusal({"--recover=memory", "-m", "json.tool"}),
                       "a Python program cannot hand its state"));
}

TEST(Plan, SpareProcessesAreForLockstepTrain) {
  EXPECT_EQ(plan_for({"--recover=memory", "true"}).num_spares, 0);
  EXPECT_EQ(plan_for({"--recover=memory", "--spares=0", "true"}).num_spares, 0);
  EXPECT_TRUE(contains(plan_refusal({"--recover=memory", "--spares=1", "true"}),
                       "only lockstep train"));
  EXPECT_TRUE(contains(plan_refusal({"--spares=-1", "true"}),
                       "--spares '-1' must be an integer from 0"));
}

TEST(Plan, RecoveryFromMemoryMayBeOnSeveralNodes) {
  const Arguments fixed = {"--recover=memory", "--nnodes=2", "--node-rank=0",
                           "--master-addr=127.0.0.1"};
  const Arguments elastic = {"--recover=memory", "--nnodes=1:2",
                             "--rdzv-endpoint=127.0.0.1"};
  for (Arguments arguments : {fixed, elastic}) {
    arguments.emplace_back("true");
    EXPECT_TRUE(plan_for(arguments).recovers_in_memory);
    arguments.back() = "-m";
    arguments.emplace_back("json.tool");
    EXPECT_TRUE(contains(plan_refusal(arguments),
                         "a Python program cannot hand its state"));
  }
}

TEST(Plan, StandaloneGetsAFreshRunName) {
  EXPECT_EQ(plan_for({"true"}).run_id, "none");
  EXPECT_NE(plan_for({"--standalone", "true"}).run_id,
            plan_for({"--standalone", "true"}).run_id);
  EXPECT_NE(plan_for({"true"}).job, plan_for({"true"}).job);
}

}  // namespace
}  // namespace lockstep
