// Going on with a run loses nothing, and typed flags are honoured.
#include <gtest/gtest.h>

#include <csignal>

#include "distributed/training.h"
#include "lockstep/base/files.h"
#include "lockstep/checkpoint.h"
#include "support/tree_equal.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

class TrainContinue : public ::testing::Test {
 protected:
  // 64 samples in batches of 8: 8 steps per epoch.
  Training tiny(const std::string& name, const Words& flags) const {
    return {.folder = temp_.path() / name,
            .flags = Words{"--train_samples=64", "--batch_size=8",
                           "--val_samples=16", "--log_every=4"} +
                     flags};
  }
  // Nothing typed but these.
  Training again(const std::string& name, const Words& flags) const {
    return {.folder = temp_.path() / name, .flags = flags};
  }
  fs::path in(const std::string& file) const { return temp_.path() / file; }
  int64_t last_step(const std::string& name) const {
    return last_checkpoint(in(name)).at("global_step").as_int();
  }

  const TempDir temp_;
};

TEST_F(TrainContinue, ACheckpointDoesNotEndUpInTheFolderOfAnotherRun) {
  run_well(tiny("a", {"--epochs=1"}));
  run_well(tiny("b", {"--epochs=2", "--seed=5"}));
  const auto files = files_below(in("b"));
  const std::string metrics = base::read_file(in("b/metrics.jsonl"));
  const ProcessResult result = run(again(
      "b", {"--resume", in("a/checkpoint_step_8.pt").string(), "--epochs=3"}));
  EXPECT_EQ(result.exit_code, 2) << result.out;
  expect_in(result.err, "holds another run");
  EXPECT_EQ(files_below(in("b")), files);
  EXPECT_EQ(base::read_file(in("b/metrics.jsonl")), metrics);
  // Without --save_dir the run goes on where the checkpoint lies.
  const ProcessResult beside =
      run(Training{.folder = {},
                   .flags = {"--resume", in("a/checkpoint_step_8.pt").string(),
                             "--epochs=2"}});
  EXPECT_EQ(beside.exit_code, 0) << beside.err;
  EXPECT_EQ(last_step("a"), 16);
}

TEST_F(TrainContinue, FromAnOlderCheckpointTheNewerOnesAreKeptAside) {
  run_well(tiny("run", {"--epochs=4", "--keep_last=0"}));
  run_well(again("run", {"--resume", in("run/checkpoint_step_16.pt").string(),
                         "--epochs=3", "--lr=0.001", "--keep_last=1"}));
  EXPECT_EQ(last_step("run"), 24);
  EXPECT_TRUE(fs::exists(in("run/left_1/checkpoint_step_32.pt")));
  expect_in(base::read_file(in("run/left_1/metrics.jsonl")), "\"step\":32");
  const ProcessResult latest =
      run(again("run", {"--resume=latest", "--epochs=4"}));
  expect_in(latest.out, "checkpoint_step_24.pt");
}

TEST_F(TrainContinue, TheBestModelIsThatOfTheRunThatGoesOn) {
  // Best at step 8; nothing is better later.
  const Words losses = {"--validation_losses", "3", "2", "5", "4"};
  const auto probe = [&](const std::string& name, const Words& flags) {
    return Training{
        .recipe = "probe",
        .folder = in(name),
        .flags = Words{"--batch_size=6", "--keep_last=0"} + losses + flags};
  };
  run_well(probe("run", {"--epochs=4"}));
  const auto best_step = [&](const std::string& name) {
    return load_checkpoint(in(name) / "best_model.pt")
        .at("global_step")
        .as_int();
  };
  EXPECT_EQ(best_step("run"), 8);
  // From before it: that of step 4 is in the folder, and the best again.
  run_well(probe("run", {"--resume", in("run/checkpoint_step_4.pt").string(),
                         "--epochs=2", "--validation_losses", "9"}));
  EXPECT_EQ(best_step("run"), 4);
  // In another folder: the file itself was the best, or nothing is.
  run_well(probe("other", {"--resume", in("run/checkpoint_step_4.pt").string(),
                           "--epochs=2", "--validation_losses", "9"}));
  EXPECT_EQ(best_step("other"), 4);
  const ProcessResult third =
      run(probe("third", {"--resume", in("run/checkpoint_step_8.pt").string(),
                          "--epochs=3", "--validation_losses", "9"}));
  expect_in(third.out, "the best model so far, of step 4, is not in");
  EXPECT_EQ(best_step("third"), 12);
}

TEST_F(TrainContinue, OneTrainingAtATimeWritesToAFolder) {
  const Training first =
      Training{.recipe = "probe",
               .folder = in("run"),
               .flags = {"--pause_in=train", "--pause_call=2", "--record",
                         temp_.path().string()}};
  Process process(command_of(first), process_options(first));
  ASSERT_TRUE(wait_for([&] { return fs::exists(in("paused_0")); }, 120));
  for (const char* flag : {"--resume=latest", "--overwrite"}) {
    const ProcessResult second =
        run({.recipe = "probe", .folder = in("run"), .flags = {flag}});
    EXPECT_EQ(second.exit_code, 2) << second.out;
    expect_in(second.err, "is in use by another training (process ");
  }
  temp_.write("go", "");
  EXPECT_EQ(process.wait().exit_code, 0);
}

// The mean of a log interval that began on two ranks.
TEST_F(TrainContinue, OnFewerRanksNoLossIsLeftOut) {
  const Words flags = {"--global_batch_size=8", "--precision=fp64",
                       "--epochs=1"};
  const auto on = [&](int world, const std::string& name, const Words& more) {
    Training training = tiny(name, flags + more);
    std::erase(training.flags, "--batch_size=8");
    training.world = world;
    return training;
  };
  run_well(on(1, "whole", {}));
  run_well(on(2, "parts", {"--stop_after_steps=3"}));
  run_well(on(1, "parts", {"--resume=latest", "--stop_after_steps=100"}));
  const auto losses = metric(in("whole"), "train/loss");
  ASSERT_EQ(losses.size(), 2U);
  expect_close(metric(in("parts"), "train/loss"), losses, 1e-10);
}

TEST_F(TrainContinue, AnotherOrderInTheMiddleOfAnEpochIsSaid) {
  run_well(tiny("run", {"--n_steps=5"}));
  const ProcessResult other =
      run(again("run", {"--resume=latest", "--n_steps=9", "--seed=9"}));
  EXPECT_EQ(other.exit_code, 0) << other.err;
  expect_in(other.err, "samples are missed or seen twice");
}

TEST_F(TrainContinue, SamplingLeavesTheImagesOfTheTraining) {
  run_well(tiny("run", {"--n_steps=4", "--sample_every=4"}));
  const std::string before = base::read_file(in("run/samples/step_4.png"));
  const ProcessResult result =
      run({WORKER_PROGRAM, "sample", "tiny", "--device=cpu", "--seed=7",
           "--checkpoint", in("run/checkpoint_step_4.pt")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(base::read_file(in("run/samples/step_4.png")), before);
  EXPECT_TRUE(fs::exists(in("run/sampled_seed_7/samples/step_4.png")));
}

TEST_F(TrainContinue, WeightsOfAFileBeginANewRun) {
  run_well(tiny("old", {"--epochs=1", "--ema_decay=0.9"}));
  const std::string from = in("old/checkpoint_step_8.pt");
  // Nothing is learned, so that the weights can be compared.
  const Words flags = {"--init_from", from, "--lr=0", "--ema_decay=0.5"};
  const ProcessResult begun = run(tiny("new", flags + Words{"--epochs=1"}));
  ASSERT_EQ(begun.exit_code, 0) << begun.err;
  expect_in(begun.out, "weights of " + from + ": 6 of 6 tensors loaded\n");
  const Tree old_file = last_checkpoint(in("old"));
  const Tree new_file = last_checkpoint(in("new"));
  expect_equal(new_file.at("model_state_dict").value(),
               old_file.at("model_state_dict").value());
  // Averages begin with them, too; nothing else is taken.
  const TreeView average = new_file.at("lockstep").at("ema").at(0);
  EXPECT_TRUE(average.at("state_dict")
                  .at("last.bias")
                  .as_tensor()
                  .allclose(weight(old_file, "last.bias"), 1e-6, 1e-7));
  EXPECT_EQ(last_step("new"), 8);
}

TEST_F(TrainContinue, WeightsThatDoNotFitAreNamed) {
  run_well(tiny("old", {"--epochs=1"}));
  const std::string from = in("old/checkpoint_step_8.pt");
  const Words wide = {"--init_from", from, "--width=16", "--epochs=1"};
  const std::string shapes =
      "\n  first.weight: file [8, 1, 3, 3], module [16, 1, 3, 3]\n";
  const ProcessResult refused = run(tiny("new", wide));
  EXPECT_EQ(refused.exit_code, 2) << refused.out;
  expect_in(refused.err, "5 of the model's 6 tensors have another shape");
  expect_in(refused.err, shapes);
  expect_in(refused.err, "--ignore_mismatched_sizes");
  EXPECT_FALSE(fs::exists(in("new")));
  const ProcessResult partial =
      run(tiny("new", wide + Words{"--ignore_mismatched_sizes"}));
  ASSERT_EQ(partial.exit_code, 0) << partial.err;
  expect_in(partial.err, "1 of 6 tensors loaded\nskipped, the shapes differ");
  expect_in(partial.err, shapes);
  const std::string none = temp_.write("none.pt", base::read_file(from));
  const ProcessResult nothing =
      run({.recipe = "probe",
           .folder = in("probe"),
           .flags = {"--init_from", none, "--epochs=1"}});
  EXPECT_EQ(nothing.exit_code, 2) << nothing.out;
  expect_in(nothing.err, "none of its weights fits the model");
  EXPECT_FALSE(fs::exists(in("probe")));
}

TEST_F(TrainContinue, WeightsOfAFileAreForRunsThatHaveNone) {
  run_well(tiny("old", {"--epochs=1"}));
  const std::string from = in("old/checkpoint_step_8.pt");
  const Words flags = {"--init_from", from, "--resume=latest"};
  const ProcessResult first = run(tiny("new", flags + Words{"--epochs=1"}));
  expect_in(first.out, "6 of 6 tensors loaded");
  const ProcessResult second = run(tiny("new", flags + Words{"--epochs=2"}));
  expect_not_in(second.out, "tensors loaded");
  EXPECT_EQ(last_step("new"), 16);
  const ProcessResult both =
      run(tiny("other", {"--init_from", from, "--resume", from, "--epochs=2"}));
  EXPECT_EQ(both.exit_code, 2);
  expect_in(both.err, "leave one out");
  const ProcessResult missing = run(tiny("other", {"--init_from=no.pt"}));
  EXPECT_EQ(missing.exit_code, 2);
  expect_in(missing.err, "--init_from no.pt: there is no such file");
}

TEST_F(TrainContinue, ALargerBatchLeavesFewerStepsButAllEpochs) {
  run_well(tiny("run", {"--epochs=3"}));
  run_well(again("run", {"--resume=latest", "--batch_size=32", "--epochs=5"}));
  EXPECT_EQ(last_step("run"), 24 + 2 * 2);
  const ProcessResult done = run(again("run", {"--resume=latest"}));
  EXPECT_EQ(done.exit_code, 0);
  expect_in(done.out, "nothing to train: the run ended at step 28");
}

TEST_F(TrainContinue, TypedFlagsBeatTheRivalsOfTheRun) {
  run_well(tiny("run", {"--n_steps=4", "--use_amp", "--warmup_steps=2",
                        "--save_every=2"}));
  run_well(again("run", {"--resume=latest", "--epochs=2", "--precision=fp32",
                         "--warmup_epochs=0.5", "--save_every_epochs=1",
                         "--keep_last=0"}));
  EXPECT_EQ(last_step("run"), 16);
  const std::string config = base::read_file(in("run/config.yaml"));
  for (const char* line : {"n_steps: null", "use_amp: false", "warmup_steps: 0",
                           "save_every: null"}) {
    expect_in(config, line);
  }
}

TEST_F(TrainContinue, ADamagedConfigFileIsMadeAnewFromTheCheckpoint) {
  run_well(tiny("run", {"--epochs=1", "--lr=0.0125"}));
  const std::string config = base::read_file(in("run/config.yaml"));
  fs::resize_file(in("run/config.yaml"), config.size() / 2);
  const ProcessResult result =
      run(again("run", {"--resume=latest", "--epochs=2"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.err,
            "warning: " + in("run/config.yaml").string() + " is damaged");
  expect_in(result.err, in("run/checkpoint_step_8.pt").string());
  EXPECT_EQ(last_step("run"), 16);
  std::string expected = config;
  expected.replace(expected.find("epochs: 1\n"), 10, "epochs: 2\n");
  EXPECT_EQ(base::read_file(in("run/config.yaml")), expected);
}

TEST_F(TrainContinue, ARunThatWasStoppedEarlyGoesOnWithMorePatience) {
  const Words flags = {"--lr=0", "--epochs=6"};
  run_well(tiny("run", flags + Words{"--early_stopping_patience=1"}));
  EXPECT_EQ(last_step("run"), 16);
  const ProcessResult same = run(again("run", {"--resume=latest"}));
  expect_in(same.out, "it was stopped early");
  run_well(again("run", {"--resume=latest", "--early_stopping_patience=3"}));
  EXPECT_EQ(last_step("run"), 32);
}

TEST_F(TrainContinue, APlateauDoesNotHideANewLearningRate) {
  run_well(tiny("run", {"--lr_schedule=plateau", "--epochs=1"}));
  run_well(again("run", {"--resume=latest", "--lr=0.0001", "--epochs=2"}));
  EXPECT_EQ(metric(in("run"), "train/learning_rate").back(), 0.0001);
}

TEST_F(TrainContinue, PrintedSettingsGiveTheSameRun) {
  for (const Words& flags :
       {Words{"--global_batch_size=64", "--batch_size=32"},
        Words{"--global_batch_size=64"},
        Words{"--global_batch_size=32", "--gradient_accumulation_steps=2"},
        Words{"--use_amp"}, Words{"--use_amp", "--precision=bf16"}}) {
    Training first{.folder = in("first"),
                   .flags = flags + Words{"--train_samples=128", "--epochs=1",
                                          "--overwrite"}};
    run_well(first);
    first.flags.push_back("--print-config");
    const std::string printed = temp_.write("printed.yaml", run(first).out);
    run_well({.folder = in("second"),
              .flags = {"--config", printed, "--overwrite"}});
    EXPECT_EQ(metric_lines(in("first")), metric_lines(in("second")));
    expect_equal(
        last_checkpoint(in("first")).at("lockstep").at("config").value(),
        last_checkpoint(in("first")).at("lockstep").at("config").value());
  }
}

TEST_F(TrainContinue, ARestartBeforeTheFirstSaveTakesTheCommandsCheckpoint) {
  run_well(tiny("a", {"--epochs=1"}));
  const std::string from = in("a/checkpoint_step_8.pt").string();
  fs::create_directory(in("b"));
  temp_.write("b/config.yaml", "# job 7\n# recipe: tiny\n");
  const Training training = again("b", {"--resume", from, "--epochs=2"});
  ProcessOptions options = process_options(training);
  options.environment["LOCKSTEP_JOB"] = "7";
  options.environment["TORCHELASTIC_RESTART_COUNT"] = "1";
  const ProcessResult result =
      lockstep::testing::run(command_of(training), options);
  expect_in(result.out + result.err, "resuming from " + from);
  // A restart of a job without a name takes over nobody's run.
  options.environment.erase("LOCKSTEP_JOB");
  const Training other = again("a", {"--epochs=2"});
  const ProcessResult refused =
      lockstep::testing::run(command_of(other), options);
  EXPECT_EQ(refused.exit_code, 2);
  expect_in(refused.err, "already holds a run");
}

TEST_F(TrainContinue, AWriteThatFailedAndLaterOnesThatDidNotAreNoFailure) {
  // A folder in the way of one checkpoint.
  fs::create_directories(in("run/checkpoint_step_4.pt/x"));
  const ProcessResult result =
      run(tiny("run", {"--epochs=1", "--save_every=4"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.err, "checkpoint_step_4.pt was not written");
  EXPECT_TRUE(fs::exists(in("run/checkpoint_step_8.pt")));
  fs::create_directories(in("end/checkpoint_step_8.pt/x"));
  const ProcessResult lost = run(tiny("end", {"--epochs=1"}));
  EXPECT_EQ(lost.exit_code, 3);
  expect_in(base::read_file(in("end/train.log")), "could not be written");
}

TEST_F(TrainContinue, ASaveSignalAtAnyTimeKillsNobodyAndSavesOnce) {
  for (const double seconds : {0.1, 0.3, 0.6}) {
    Training training = tiny("run", {"--epochs=60", "--overwrite",
                                     "--save_every=100000", "--keep_last=0"});
    training.world = 2;
    Process process(command_of(training), process_options(training));
    wait_for([] { return false; }, seconds);
    process.send(SIGUSR1);
    const ProcessResult result = process.wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    size_t saves = 0;
    for (size_t at = result.out.find("SIGUSR1 at step");
         at != std::string::npos;
         at = result.out.find("SIGUSR1 at step", at + 1)) {
      ++saves;
    }
    EXPECT_EQ(saves, 1U) << "after " << seconds << " s";
  }
}

TEST_F(TrainContinue, EvaluationUsesTheSettingsAndAveragesOfTheCheckpoint) {
  run_well(tiny(
      "run", {"--width=5", "--epochs=2", "--ema_decay=0.5", "--keep_last=0"}));
  const std::string file = in("run/checkpoint_step_16.pt").string();
  const auto eval = [&](const Words& flags) {
    return lockstep::testing::run(
        Words{WORKER_PROGRAM, "eval", "tiny", "--checkpoint", file} + flags);
  };
  const ProcessResult plain = eval({});
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  expect_in(plain.out, "samples: 16");
  const ProcessResult averaged = eval({"--ema=0"});
  EXPECT_EQ(averaged.exit_code, 0) << averaged.err;
  EXPECT_NE(averaged.out, plain.out);
  EXPECT_EQ(eval({"--ema=1"}).exit_code, 2);
  const ProcessResult exported = lockstep::testing::run(
      {WORKER_PROGRAM, "export", file, in("ema.safetensors").string(), "--key",
       "lockstep.ema.0.state_dict"});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  const ProcessResult sampled = lockstep::testing::run(
      {WORKER_PROGRAM, "sample", "tiny", "--checkpoint", file});
  EXPECT_EQ(sampled.exit_code, 0) << sampled.err;
  EXPECT_TRUE(fs::exists(in("run/sampled_seed_0/samples/step_16.png")))
      << sampled.out;
}

TEST_F(TrainContinue, ValidationIsThatOfTheSavedModel) {
  // BatchNorm: each rank has statistics of its own while it trains.
  const Training training{.recipe = "probe",
                          .world = 2,
                          .folder = in("run"),
                          .flags = {"--batch_norm", "--epochs=2",
                                    "--train_samples=28", "--val_samples=9"}};
  run_well(training);
  const double logged = metric(in("run"), "val/error").back();
  const Words command = command_of({.recipe = "probe"});
  const int64_t step = last_step("run");
  const ProcessResult result = lockstep::testing::run(
      {command[0], "eval", "probe", "--checkpoint",
       in("run/checkpoint_step_" + std::to_string(step) + ".pt").string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  char text[40];
  std::snprintf(text, sizeof(text), "error: %.6f", logged);
  expect_in(result.out, text);
}

}  // namespace
}  // namespace lockstep::testing
