#include "lockstep/launch/worker_command.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/launch/option_table.h"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

launch::WorkerCommand split_train(const Words& words) {
  return launch::split_worker_command("train", words);
}

launch::Plan plan_command(const Words& words,
                          base::Environment environment = {}, int gpus = 0,
                          const std::string& name = "train") {
  environment.emplace("PATH", "/usr/bin:/bin");
  return launch::plan_worker_command(
      launch::split_worker_command(name, words), "/bin/true", environment,
      {.count_gpus = [gpus] { return gpus; }, .count_cores = [] { return 8; }});
}

TEST(WorkerCommand, LauncherOptionsAreTakenOutAnywhere) {
  const launch::WorkerCommand command =
      split_train({"--nproc", "2", "jit", "--lr", "0.1", "--max_restarts=3",
                   "--standalone", "--epochs=5"});
  EXPECT_EQ(command.launch_options,
            (Words{"--nproc", "2", "--max_restarts=3", "--standalone"}));
  EXPECT_EQ(command.arguments, (Words{"jit", "--lr", "0.1", "--epochs=5"}));
}

TEST(WorkerCommand, AllSpellingsOfAnOptionAreTaken) {
  for (const Words& words : std::vector<Words>{{"jit", "--nproc-per-node", "4"},
                                               {"jit", "--nproc_per_node", "4"},
                                               {"--nproc-per-node=4", "jit"},
                                               {"--nproc_per_node=4", "jit"},
                                               {"--nproc=4", "jit"}}) {
    EXPECT_EQ(split_train(words).arguments, Words{"jit"});
    EXPECT_EQ(plan_command(words).num_processes, 4);
  }
}

TEST(WorkerCommand, OtherWordsReachTheWorkerUnchanged) {
  const Words words = {"jit",         "-r", "3",        "-t",
                       "--np",        "2",  "--module", "--nproc-per-nod=2",
                       "--x=--nproc", "-",  "",         "--=1"};
  EXPECT_EQ(split_train(words).arguments, words);
  EXPECT_TRUE(split_train(words).launch_options.empty());
}

TEST(WorkerCommand, BehindTwoDashesEverythingIsTheWorkers) {
  const launch::WorkerCommand command = split_train(
      {"--nproc=2", "jit", "--", "--log_dir", "x", "--", "--nproc=3"});
  EXPECT_EQ(command.launch_options, Words{"--nproc=2"});
  EXPECT_EQ(command.arguments,
            (Words{"jit", "--log_dir", "x", "--", "--nproc=3"}));
}

TEST(WorkerCommand, TheTimeoutGoesToBoth) {
  const launch::WorkerCommand command = split_train({"jit", "--timeout", "60"});
  EXPECT_EQ(command.launch_options, (Words{"--timeout", "60"}));
  EXPECT_EQ(command.arguments, (Words{"jit", "--timeout", "60"}));
}

TEST(WorkerCommand, TrainingsOnTheCpusOfOneMachineRecoverFromMemory) {
  const auto recovers = [](const Words& words, int gpus = 0) {
    return plan_command(words, {}, gpus).recovers_in_memory;
  };
  EXPECT_TRUE(recovers({"jit", "--nproc=2"}));
  EXPECT_TRUE(recovers({"jit", "--nproc=2", "--device=cpu"}, 4));
  EXPECT_FALSE(recovers({"jit", "--nproc=2"}, 4));
  EXPECT_FALSE(recovers({"jit"}));
  EXPECT_FALSE(recovers({"jit", "--nproc=2", "--recover=restart"}));
  EXPECT_FALSE(recovers({"jit", "--nproc=2", "--nnodes=2", "--node-rank=0",
                         "--master-addr=127.0.0.1"}));
  EXPECT_FALSE(
      plan_command({"jit", "--nproc=2"}, {}, 0, "sample").recovers_in_memory);
}

TEST(WorkerCommand, TrainingsThatRecoverFromMemoryHaveASpareProcess) {
  const auto num_spares = [](const Words& words, int gpus = 0) {
    return plan_command(words, {}, gpus).num_spares;
  };
  EXPECT_EQ(num_spares({"jit", "--nproc=2"}), 1);
  EXPECT_EQ(num_spares({"jit", "--nproc=2", "--recover=memory"}, 4), 0);
  EXPECT_EQ(
      num_spares({"jit", "--nproc=2", "--recover=memory", "--spares=1"}, 4), 1);
  EXPECT_EQ(num_spares({"jit", "--nproc=2", "--spares=3"}), 3);
  EXPECT_EQ(num_spares({"jit", "--nproc=2", "--spares=0"}), 0);
  EXPECT_EQ(num_spares({"jit"}), 0);
  EXPECT_EQ(num_spares({"jit", "--nproc=2", "--recover=restart"}), 0);
  EXPECT_EQ(plan_command({"jit", "--nproc=2"}, {}, 0, "sample").num_spares, 0);
  EXPECT_EQ(num_spares({"jit", "--nproc=2", "--recover=restart", "--spares=0"}),
            0);
}

TEST(WorkerCommand, SpareProcessesOfAJobThatReplacesNoRankAreRefused) {
  try {
    plan_command({"jit", "--nproc=2", "--recover=restart", "--spares=1"});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_TRUE(std::string(error.what())
                    .starts_with("--spares: no rank of this job is replaced"));
  }
}

TEST(WorkerCommand, AMissingValueIsAnError) {
  try {
    split_train({"jit", "--nproc"});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()), "--nproc needs a value: N");
  }
}

TEST(WorkerCommand, QuestionsStartNoJob) {
  for (const Words& words : std::vector<Words>{{},
                                               {"--nproc=2"},
                                               {"jit", "--help"},
                                               {"jit", "--nproc=2", "-h"},
                                               {"--help", "jit"},
                                               {"jit", "--print-config"},
                                               {"jit", "--print_config"},
                                               {"jit", "--", "--help"}}) {
    EXPECT_TRUE(launch::is_question(split_train(words)));
    EXPECT_FALSE(launch::asks_for_launch_help(split_train(words)));
  }
  EXPECT_FALSE(launch::is_question(split_train({"jit"})));
  EXPECT_FALSE(launch::is_question(split_train({"jit", "-h", "512"})));
  EXPECT_TRUE(launch::asks_for_launch_help(split_train({"--help"})));
  EXPECT_TRUE(launch::asks_for_launch_help(split_train({"--nproc=2", "-h"})));
}

TEST(WorkerCommand, ItsHelpShowsWhatItTakes) {
  const std::string help = launch::worker_command_help("sample");
  for (const launch::RunOption& option : launch::run_option_table()) {
    const std::string word = std::string("--") + option.name;
    const bool is_taken = split_train({word + "=1"}).arguments.empty();
    if (option.help == nullptr || word == "--timeout") continue;
    EXPECT_EQ(help.find("\n  " + word + (option.value_name ? " " : "")) !=
                  std::string::npos,
              is_taken)
        << word;
  }
  EXPECT_NE(help.find("lockstep sample RECIPE --help"), std::string::npos);
}

TEST(WorkerCommand, ThePlanRunsTheWorker) {
  const launch::Plan plan =
      plan_command({"jit", "--nproc=2", "--lr=1"}, {{"PET_MODULE", "1"}});
  EXPECT_EQ(plan.command.file, "/bin/true");
  EXPECT_EQ(plan.command.arguments,
            (Words{"/bin/true", "train", "jit", "--lr=1"}));
  EXPECT_EQ(plan.num_processes, 2);
}

TEST(WorkerCommand, AutoMeansTheGpusElseOneProcess) {
  EXPECT_EQ(plan_command({"jit", "--nproc=auto"}).num_processes, 1);
  EXPECT_EQ(plan_command({"jit", "--nproc=auto"}, {}, 4).num_processes, 4);
  EXPECT_EQ(
      plan_command({"jit", "--nproc=auto"}, {{"CUDA_VISIBLE_DEVICES", "2"}}, 4)
          .num_processes,
      1);
  EXPECT_EQ(plan_command({"jit"}, {{"PET_NPROC", "auto"}}).num_processes, 1);
  EXPECT_EQ(plan_command({"jit", "--nproc=cpu"}).num_processes, 8);
}

TEST(WorkerCommand, DeviceCpuMeansCpus) {
  const base::Environment wrong = {{"CUDA_VISIBLE_DEVICES", "7"}};
  EXPECT_EQ(plan_command({"jit", "--nproc=4", "--device=cpu"}, wrong, 2)
                .num_processes,
            4);
  EXPECT_EQ(plan_command({"jit", "--nproc=auto", "--device", "cpu"}, {}, 8)
                .num_processes,
            1);
  EXPECT_TRUE(plan_command({"jit", "--device=cpu"}, {}, 8).notes.empty());
  EXPECT_THROW(plan_command({"jit"}, wrong, 2), ConfigError);
  EXPECT_THROW(plan_command({"jit", "--nproc=cpu"}, {}, 2), ConfigError);
}

TEST(WorkerCommand, IdleGpusAreNotedUnlessTheyAreWanted) {
  EXPECT_EQ(plan_command({"jit"}, {}, 8).notes,
            Words{"1 of 8 GPUs is used; --nproc 8 (or --nproc auto) trains on "
                  "all"});
  EXPECT_EQ(plan_command({"jit"}, {}, 2, "sample").notes,
            Words{"1 of 2 GPUs is used; --nproc 2 (or --nproc auto) uses all"});
  EXPECT_TRUE(plan_command({"jit"}, {}, 1).notes.empty());
  EXPECT_TRUE(plan_command({"jit"}, {}, 0).notes.empty());
  EXPECT_TRUE(plan_command({"jit", "--nproc=1"}, {}, 8).notes.empty());
  EXPECT_TRUE(
      plan_command({"jit"}, {{"PET_NPROC_PER_NODE", "1"}}, 8).notes.empty());
}

}  // namespace
}  // namespace lockstep
