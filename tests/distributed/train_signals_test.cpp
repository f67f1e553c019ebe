// Every signal that a training knows, in every phase of it: what is saved goes
// on to the same bits.
#include <gtest/gtest.h>

#include <csignal>

#include "distributed/training.h"
#include "lockstep/base/files.h"
#include "lockstep/base/signals.h"
#include "support/tree_equal.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

struct Moment {
  const char* name;
  const char* pause_in;  // A phase of the probe recipe; empty: saving.
  int call;
};

// With --warmup_steps 3 --val_every 2 --save_every 2 --sample_every 4.
constexpr Moment kMoments[] = {{"WarmUp", "train", 1},
                               {"Step", "train", 5},
                               {"Validation", "validate", 4},
                               {"Sampling", "sample", 1},
                               {"Saving", "", 0}};
constexpr int kSignals[] = {SIGTERM, SIGHUP, SIGINT, SIGUSR1};

using Case = std::tuple<int, Moment>;

class TrainSignals : public ::testing::TestWithParam<Case> {
 protected:
  int signal() const { return std::get<0>(GetParam()); }
  const Moment& moment() const { return std::get<1>(GetParam()); }
  // Each world meets each phase and each signal.
  int world() const {
    const auto& [number, where] = GetParam();
    return 1 + (number + where.call) % 3;
  }

  Training training(const std::string& name, const Words& more) const {
    return {
        .recipe = "probe",
        .world = world(),
        .folder = temp_.path() / name,
        .flags =
            Words{"--n_steps=10", "--global_batch_size=6", "--dropout=0.3",
                  "--ema_decay=0.9", "--warmup_steps=3", "--lr_schedule=cosine",
                  "--precision=bf16", "--val_every=2", "--val_samples=12",
                  "--save_every=2", "--sample_every=4", "--keep_last=0"} +
            more};
  }

  fs::path in(const std::string& name) const { return temp_.path() / name; }

  // The first checkpoint stays unfinished until the signal was sent.
  void hold_saving() const {
    temp_.write("faults", "fsync HOLD 0 *checkpoint_step_2.pt.partial.*\n");
  }

  bool is_at_the_moment() const {
    if (!is_saving()) {
      for (int rank = 0; rank < world(); ++rank) {
        if (!fs::exists(in("paused_" + std::to_string(rank)))) return false;
      }
      return true;
    }
    for (const std::string& name : files_below(in("stopped"))) {
      if (contains(name, "checkpoint_step_2.pt.partial.")) return true;
    }
    return false;
  }

  void let_go() const {
    fs::remove(in("faults"));
    temp_.write("go", "");
  }

  bool is_saving() const { return moment().pause_in[0] == '\0'; }

  ProcessResult run_with_signal() const {
    const Training stopped = training(
        "stopped", {"--pause_in", moment().pause_in, "--pause_call",
                    std::to_string(moment().call), "--record", temp_.path()});
    ProcessOptions options = process_options(stopped);
    options.environment["LD_PRELOAD"] = DISK_FAULT_SHIM;
    options.environment["DISK_FAULTS"] = in("faults").string();
    if (is_saving()) hold_saving();
    Process process(command_of(stopped), options);
    EXPECT_TRUE(wait_for([&] { return is_at_the_moment(); }, 120))
        << process.out() << process.err();
    process.send(signal());
    sleep_briefly();
    let_go();
    return process.wait();
  }

  TempDir temp_;
};

TEST_P(TrainSignals, SavesAndResumesToTheSameBits) {
  run_well(training("whole", {}));
  const ProcessResult result = run_with_signal();
  const bool goes_on = signal() == SIGUSR1;
  ASSERT_EQ(result.exit_code, goes_on ? 0 : 128 + signal())
      << result.out << result.err;
  expect_in(result.out, goes_on ? ": saving\n" : ": saving, then ending\n");
  if (!goes_on) run_well(training("stopped", {"--resume=latest"}));
  EXPECT_EQ(metric_lines(in("stopped")), metric_lines(in("whole")));
  const Tree actual = last_checkpoint(in("stopped"));
  const Tree expected = last_checkpoint(in("whole"));
  expect_equal(learned(actual), learned(expected));
  expect_equal(actual.at("lockstep").at("state").value(),
               expected.at("lockstep").at("state").value());
  for (const std::string& name : files_below(in("whole/samples"))) {
    EXPECT_EQ(base::read_file(in("stopped/samples/" + name)),
              base::read_file(in("whole/samples/" + name)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, TrainSignals,
                         ::testing::Combine(::testing::ValuesIn(kSignals),
                                            ::testing::ValuesIn(kMoments)),
                         [](const auto& instance) {
                           return base::signal_name(
                                      std::get<0>(instance.param)) +
                                  "In" + std::get<1>(instance.param).name;
                         });

}  // namespace
}  // namespace lockstep::testing
