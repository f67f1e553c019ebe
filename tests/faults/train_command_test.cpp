// `lockstep train` and its sisters, with a script for a worker.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "faults/launcher.h"
#include "lockstep/launch/port.h"
#include "support/temp_dir.h"

namespace lockstep::testing {
namespace {

// Says how it was started; each argument in brackets.
constexpr const char* kEcho =
    "#!/bin/sh\n"
    "for word; do line=\"$line [$word]\"; done\n"
    "echo \"rank ${RANK:-none} of ${WORLD_SIZE:-none}$line\"\n";

// A worker script, and a launcher that uses it.
class TrainCommand : public ::testing::Test {
 protected:
  ProcessResult start(const std::string& script, const Words& words,
                      std::map<std::string, std::string> environment = {}) {
    environment["LOCKSTEP_WORKER"] = folder_.write_script("worker", script);
    return run(command(words), {.environment = std::move(environment)});
  }

  static Words command(const Words& words) {
    Words all = {LOCKSTEP_PROGRAM};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }

  TempDir folder_;
};

TEST_F(TrainCommand, OneProcessIsTheDefault) {
  for (const char* name : {"train", "eval", "sample"}) {
    const auto result = start(kEcho, {name, "jit", "--lr", "0.1"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out,
              std::string("rank 0 of 1 [") + name + "] [jit] [--lr] [0.1]\n");
  }
}

TEST_F(TrainCommand, StartsAsManyAsAskedFor) {
  const Words expected = {"rank 0 of 2 [train] [jit] [--epochs=3]",
                          "rank 1 of 2 [train] [jit] [--epochs=3]"};
  for (const Words& words : std::vector<Words>{
           {"train", "jit", "--nproc", "2", "--epochs=3"},
           {"train", "--nproc=2", "jit", "--epochs=3"},
           {"train", "jit", "--epochs=3", "--nproc_per_node=2"},
           {"train", "jit", "--epochs=3", "--nproc-per-node", "2"}}) {
    const auto result = start(kEcho, words, {{"CUDA_VISIBLE_DEVICES", ""}});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(sorted_lines(result.out), expected);
  }
}

TEST_F(TrainCommand, ThePortInTheWorkersFlagsIsWhereRanksMeet) {
  const std::string script = "#!/bin/sh\necho $MASTER_PORT \"$@\"\n";
  const std::string port =
      std::to_string(launch::StoreSocket::any("127.0.0.1").port());
  const std::string worker = folder_.write_script("lockstep-worker", script);
  const auto behind =
      run(command({"run", worker, "train", "protein", "--master_port", port}));
  EXPECT_EQ(behind.out, port + " train protein --master_port " + port + "\n")
      << behind.err;
  const auto anywhere =
      start(script, {"train", "protein", "--master_port", port});
  EXPECT_EQ(anywhere.out, port + " train protein\n") << anywhere.err;
}

TEST_F(TrainCommand, WhatStandsBehindTwoDashesIsTheWorkers) {
  const auto result =
      start(kEcho, {"train", "jit", "--nproc=1", "--", "--nproc", "2 3"});
  EXPECT_EQ(result.out, "rank 0 of 1 [train] [jit] [--nproc] [2 3]\n");
}

TEST_F(TrainCommand, TheTimeoutReachesLauncherAndWorker) {
  const auto result =
      start("#!/bin/sh\necho $TORCH_DISTRIBUTED_TIMEOUT \"$@\"\n",
            {"train", "jit", "--timeout", "77"});
  EXPECT_EQ(result.out, "77 train jit --timeout 77\n");
}

TEST_F(TrainCommand, ExitCodesComeThrough) {
  EXPECT_EQ(start("#!/bin/sh\nexit 7\n", {"train", "jit"}).exit_code, 7);
  EXPECT_EQ(start("#!/bin/sh\nkill -9 $$\n", {"train", "jit"}).exit_code,
            128 + SIGKILL);
  const auto second =
      start("#!/bin/sh\n[ $RANK = 1 ] && exit 5; sleep 60\n",
            {"train", "jit", "--nproc=2"}, {{"CUDA_VISIBLE_DEVICES", ""}});
  EXPECT_EQ(second.exit_code, 5);
  EXPECT_EQ(start("#!/bin/sh\nexit 9\n", {"export", "x"}).exit_code, 9);
}

TEST_F(TrainCommand, BadInputIsSaidByTheWorkerAndNotTriedAgain) {
  const auto result =
      start("#!/bin/sh\necho 'bad flag' >&2\nexit 2\n",
            {"train", "jit", "--max-restarts", "3", "--nproc", "2"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("bad flag"), std::string::npos);
  EXPECT_EQ(result.err.find("start again"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("FAILED"), std::string::npos) << result.err;
  const auto crashed = start("#!/bin/sh\nexit 4\n", {"train", "jit"});
  EXPECT_NE(crashed.err.find("FAILED"), std::string::npos) << crashed.err;
}

// Each rank prints its error and waits until all have.
constexpr const char* kFailTogether =
    "echo \"[rank$RANK]: ConfigError: bad flag\" >&2\n"
    "echo \"[rank$RANK]:   give another\" >&2\n"
    "touch $MARKS/$RANK\n"
    "until [ -e $MARKS/0 ] && [ -e $MARKS/1 ]; do sleep 0.01; done\n"
    "exit 2\n";

TEST_F(TrainCommand, WhatAllRanksRefuseIsPrintedOnce) {
  const auto result = start(std::string("#!/bin/sh\n") + kFailTogether,
                            {"train", "jit", "--bogus", "--nproc", "2"},
                            {{"CUDA_VISIBLE_DEVICES", ""},
                             {"OMP_NUM_THREADS", "1"},
                             {"MARKS", folder_.path().string()}});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "ConfigError on all 2 ranks: bad flag\n  give another\n");
}

TEST_F(TrainCommand, AProgramsConfigErrorHasNoReport) {
  const std::string script =
      "#!/bin/sh\n"
      "echo '{\"message\": {\"message\": \"ConfigError: bad flag\", "
      "\"extraInfo\": {}}}' > $TORCHELASTIC_ERROR_FILE\n";
  const auto result =
      run(command({"run", "--nproc=2",
                   folder_.write_script("program", script + kFailTogether)}),
          {.environment = {{"CUDA_VISIBLE_DEVICES", ""},
                           {"OMP_NUM_THREADS", "1"},
                           {"MARKS", folder_.path().string()}}});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "ConfigError on all 2 ranks: bad flag\n  give another\n");
}

TEST_F(TrainCommand, WithoutACommandTheCommandsAndRecipesAreListed) {
  for (const Words& words : {Words{}, Words{"help"}}) {
    const auto result = start(kEcho, words);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_TRUE(contains(result.out, "\n  train RECIPE [flags] "));
    EXPECT_TRUE(contains(result.out, "\nrank none of none [recipes]\n"))
        << result.out;
  }
  EXPECT_EQ(start(kEcho, {"recipes"}).out, "rank none of none [recipes]\n");
}

TEST_F(TrainCommand, CompletionsAreFilesBesideThePrograms) {
  const std::filesystem::path bin = folder_.path() / "bin";
  std::filesystem::create_directories(bin);
  std::filesystem::copy_file(LOCKSTEP_PROGRAM, bin / "lockstep");
  const auto script = folder_.path() / "share" / "zsh" / "site-functions";
  std::filesystem::create_directories(script);
  folder_.write("share/zsh/site-functions/_lockstep", "#compdef lockstep\n");
  const std::string program = bin / "lockstep";
  EXPECT_EQ(run({program, "completion", "zsh"}).out, "#compdef lockstep\n");
  const auto missing = run({program, "completion", "fish"});
  EXPECT_EQ(missing.exit_code, 3) << missing.err;
  EXPECT_TRUE(contains(missing.err, "lockstep.fish")) << missing.err;
  const auto unknown = run({program, "completion", "tcsh"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_TRUE(contains(unknown.err, "completion bash|zsh|fish"));
}

TEST_F(TrainCommand, ARestartedWorkerKnowsThatItIsOne) {
  const auto result = start(
      "#!/bin/sh\n"
      "echo restart $TORCHELASTIC_RESTART_COUNT\n"
      "[ $TORCHELASTIC_RESTART_COUNT = 1 ]\n",
      {"train", "jit", "--max-restarts", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "restart 0\nrestart 1\n");
}

TEST_F(TrainCommand, ItsHelpIsAboutLaunching) {
  // It needs no worker.
  const auto result =
      run(command({"train", "--help"}),
          {.environment = {{"LOCKSTEP_WORKER", "/no/such/worker"}}});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(contains(result.out, "--nproc-per-node N"));
  EXPECT_TRUE(contains(result.out, "lockstep train RECIPE --help"));
}

TEST_F(TrainCommand, HelpOfACommandIsAskedForEitherWay) {
  const auto train = start(kEcho, {"help", "train"});
  EXPECT_EQ(train.out, start(kEcho, {"train", "--help"}).out);
  EXPECT_TRUE(contains(train.out, "usage: lockstep train RECIPE")) << train.out;
  const auto prepare = start(kEcho, {"prepare", "--help"});
  EXPECT_EQ(prepare.exit_code, 0) << prepare.err;
  EXPECT_TRUE(contains(prepare.out, "usage: lockstep prepare RECIPE"))
      << prepare.out;
  EXPECT_EQ(start(kEcho, {"help", "train", "jit"}).out,
            "rank none of none [train] [jit] [--help]\n");
  EXPECT_EQ(start(kEcho, {"help", "help"}).out, start(kEcho, {"help"}).out);
}

TEST_F(TrainCommand, QuestionsAreAnsweredWithoutAJob) {
  for (const char* question :
       {"--help", "-h", "--help-all", "--help_all", "--print-config"}) {
    const auto result = start(kEcho, {"train", "--nproc=8", "jit", question});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.out, std::string("rank none of none [train] [jit] [") +
                              question + "]\n");
    EXPECT_EQ(result.err, "");
  }
  EXPECT_EQ(start(kEcho, {"train"}).out, "rank none of none [train]\n");
}

TEST_F(TrainCommand, WorkOnFilesIsHandedOnUntouched) {
  for (const char* name : {"inspect", "export"}) {
    const auto result = start(kEcho, {name, "--nproc=2", "--", "--help"});
    EXPECT_EQ(result.out, std::string("rank none of none [") + name +
                              "] [--nproc=2] [--] [--help]\n");
  }
  const auto prepare = start(kEcho, {"prepare", "scribble", "--", "--help"});
  EXPECT_EQ(prepare.out,
            "rank none of none [prepare] [scribble] [--] [--help]\n");
}

TEST_F(TrainCommand, PrepareIsStartedOnSeveralProcessesWhenAsked) {
  const auto result =
      start(kEcho, {"prepare", "atlas", "--nproc=2", "--config", "a.yaml"});
  for (const char* rank : {"rank 0", "rank 1"}) {
    EXPECT_NE(result.out.find(std::string(rank) +
                              " of 2 [prepare] [atlas] [--config] [a.yaml]"),
              std::string::npos)
        << result.out << result.err;
  }
}

TEST_F(TrainCommand, TheWorkerBesideTheLauncherIsFound) {
  const TempDir bin;
  const auto launcher = bin.path() / "lockstep";
  std::filesystem::copy_file(LOCKSTEP_PROGRAM, launcher);
  bin.write_script("lockstep-worker", kEcho);
  // A link to the launcher does not hide the worker.
  const auto link = folder_.path() / "link";
  std::filesystem::create_symlink(launcher, link);
  for (const auto& program : {launcher, link}) {
    const auto result = run({program, "train", "jit"});
    EXPECT_EQ(result.out, "rank 0 of 1 [train] [jit]\n") << result.err;
  }
}

TEST_F(TrainCommand, AWorkerThatCannotRunIsReportedOnce) {
  const TempDir bin;
  const auto launcher = bin.path() / "lockstep";
  std::filesystem::copy_file(LOCKSTEP_PROGRAM, launcher);
  for (const char* name : {"train", "inspect"}) {
    const auto missing =
        run({launcher, name, "jit"}, {.environment = {{"PATH", "/no/such"}}});
    EXPECT_EQ(missing.exit_code, 127);
    EXPECT_EQ(count(missing.err, "lockstep-worker is missing"), 1);
    EXPECT_TRUE(contains(missing.err, "./lockstep.sh build"));
    const auto broken = start("#!/no/such/shell\n", {name, "jit"});
    EXPECT_EQ(broken.exit_code, 127);
    EXPECT_EQ(count(broken.err, "cannot start"), 1);
  }
  bin.write("lockstep-worker", kEcho);
  const auto closed = run({launcher, "train", "jit"});
  EXPECT_EQ(closed.exit_code, 126);
  EXPECT_TRUE(contains(closed.err, "chmod +x"));
}

TEST_F(TrainCommand, MistakesEndWithTwo) {
  const auto word = run(command({"trian", "jit"}));
  EXPECT_EQ(word.exit_code, 2);
  EXPECT_TRUE(contains(word.err, "did you mean 'lockstep train'?"));
  const auto number = start(kEcho, {"train", "jit", "--nproc", "many"});
  EXPECT_EQ(number.exit_code, 2);
  EXPECT_TRUE(contains(number.err, "'many'"));
  const auto value = start(kEcho, {"train", "jit", "--max-restarts"});
  EXPECT_EQ(value.exit_code, 2);
  EXPECT_EQ(number.out + value.out, "");
}

TEST_F(TrainCommand, HelpListsTheCommands) {
  const auto help = run(command({"help"}));
  for (const char* name :
       {"train", "eval", "sample", "prepare", "inspect", "export", "run"}) {
    EXPECT_TRUE(contains(help.out, std::string("\n  ") + name + " ")) << name;
  }
}

}  // namespace
}  // namespace lockstep::testing
