// Trainings whose records wandb's own client sends, while they run, to a
// stand-in for the server (python/wandb_server.py).
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "distributed/training.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/track/wandb_sync.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Seconds, for what takes a few on an idle machine.
constexpr double kPatience = 240;
constexpr const char* kKey = "0123456789abcdef0123456789abcdef01234567";
// Ended by a signal: the launcher does not wait for long.
const Words kLong = {"--epochs=1000000", "--val_every=1000000",
                     "--log_every=20", "--wandb_exit_timeout=1"};
const Words kShort = {"--n_steps=12", "--log_every=1"};

class StandIn {
 public:
  explicit StandIn(const std::string& mode = "ok")
      : process_(start(folder_, mode)) {
    EXPECT_TRUE(wait_for([this] { return fs::exists(folder_.path() / "port"); },
                         kPatience))
        << process_.err();
  }

  std::string address() const {
    return "http://127.0.0.1:" + base::read_file(folder_.path() / "port");
  }

  void set_mode(const std::string& mode) const { folder_.write("mode", mode); }

  Json got() const {
    return Json::parse(base::read_file(folder_.path() / "got.json"));
  }

  int64_t num_rows() const { return got()["num_rows"]; }

  bool wait_for_rows(int64_t count) const {
    return wait_for([&] { return num_rows() >= count; }, kPatience);
  }

 private:
  static Words start(const TempDir& folder, const std::string& mode) {
    folder.write("mode", mode);
    return {TORCH_PYTHON, PYTHON_SCRIPTS "/wandb_server.py",
            folder.path().string()};
  }

  TempDir folder_;
  Process process_;
};

class WandbOnline : public ::testing::Test {
 protected:
  Training training(const Words& flags, int world = 2) const {
    return {.world = world,
            .folder = temp_.path() / "run",
            .flags = Words{"--train_samples=64", "--batch_size=8",
                           "--val_samples=8", "--use_wandb"} +
                     flags};
  }

  ProcessOptions options(const Training& training,
                         const std::string& address) const {
    ProcessOptions options = process_options(training);
    options.folder = temp_.path();
    options.timeout_seconds = 2 * kPatience;
    const std::string home = temp_.path() / "home";
    fs::create_directories(home);
    const std::string clients = fs::path(TORCH_PYTHON).parent_path();
    options.environment.insert({{"PATH", clients + ":/usr/bin:/bin"},
                                {"HOME", home},
                                {"WANDB_MODE", "online"},
                                {"WANDB_DIR", temp_.path()},
                                {"WANDB_CACHE_DIR", home},
                                {"WANDB_CONFIG_DIR", home},
                                {"WANDB_DATA_DIR", home},
                                {"WANDB_BASE_URL", address},
                                {"WANDB_API_KEY", kKey},
                                {"WANDB_ERROR_REPORTING", "false"},
                                // Rows go every second instead of every 15.
                                {"WANDB_X_FILE_STREAM_TRANSMIT_INTERVAL", "1"},
                                {"NO_PROXY", "127.0.0.1"},
                                {"no_proxy", "127.0.0.1"}});
    return options;
  }

  ProcessResult train(const Words& flags, const std::string& address) const {
    const Training short_run = training(flags);
    return run(command_of(short_run), options(short_run, address));
  }

  std::string client_output() const {
    return base::try_read_file(temp_.path() / "wandb/latest-run/sync.log")
        .value_or("");
  }

  bool wait_for_client() const {
    return wait_for([this] { return contains(client_output(), "Syncing"); },
                    kPatience);
  }

  static int num_warnings(const std::string& err) {
    int count = 0;
    for (const std::string& line : base::split(err, '\n')) {
      if (contains(line, "wandb: ")) ++count;
    }
    return count;
  }

  static void end(Process& process) {
    process.send(SIGTERM);
    EXPECT_EQ(process.wait().exit_code, 128 + SIGTERM);
    EXPECT_TRUE(wait_until_gone(process.marker(), kPatience).empty());
  }

  TempDir temp_;
};

std::string command_line_of(pid_t pid) {
  return base::try_read_file("/proc/" + std::to_string(pid) + "/cmdline")
      .value_or("");
}

pid_t find_client(const Process& process) {
  for (const pid_t pid : find_marked(process.marker())) {
    const std::string line = command_line_of(pid);
    if (contains(line, std::string("beta\0sync", 9)) &&
        contains(line, "python")) {
      return pid;
    }
  }
  return 0;
}

std::vector<int64_t> steps_to(int64_t last) {
  std::vector<int64_t> steps;
  for (int64_t step = 1; step <= last; ++step) steps.push_back(step);
  return steps;
}

TEST(WandbClient, TheInstalledVersionIsTheTestedOne) {
  const TempDir home;
  const ProcessResult result =
      run({fs::path(TORCH_PYTHON).parent_path() / "wandb", "--version"},
          {.environment = {{"HOME", home.path()}}, .timeout_seconds = 120});
  EXPECT_EQ(result.out,
            std::string("wandb, version ") + track::kTestedWandbClient + "\n");
}

TEST_F(WandbOnline, RowsArriveWhileTheTrainingRuns) {
  const StandIn server;
  const Training long_run = training(kLong);
  Process process(command_of(long_run), options(long_run, server.address()));
  ASSERT_TRUE(server.wait_for_rows(5)) << process.err() << client_output();
  ASSERT_TRUE(server.wait_for_rows(server.num_rows() + 5));
  EXPECT_TRUE(process.wait_for_output("wandb: this run is at ", kPatience));
  // The key reaches the server, and is nowhere to be seen.
  EXPECT_EQ(server.got()["keys"], Json{kKey});
  for (const pid_t pid : find_marked(process.marker())) {
    expect_not_in(command_line_of(pid), kKey);
  }
  end(process);
  expect_not_in(process.out() + process.err(), kKey);
  for (const char* folder : {"run", "wandb"}) {
    for (const std::string& file : files_below(temp_.path() / folder)) {
      expect_not_in(base::read_file(temp_.path() / folder / file), kKey);
    }
  }
}

TEST_F(WandbOnline, AShortRunIsSentWholeAndAResumeJoinsIt) {
  const StandIn server;
  const Words wait = kShort + Words{"--wandb_exit_timeout=240"};
  const ProcessResult first = train(wait, server.address());
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.err, "");
  expect_in(first.out, "wandb: this run is at " + server.address());
  EXPECT_TRUE(first.out.ends_with("done; everything is in " +
                                  (temp_.path() / "run").string() + "\n"))
      << first.out;
  const Json one = server.got();
  ASSERT_EQ(one["run_ids"].size(), 1U);
  EXPECT_EQ(one["steps"], Json(steps_to(12)));
  EXPECT_EQ(one["exit_code"], 0);

  const ProcessResult second =
      train(Words{"--n_steps=18", "--log_every=1", "--resume=latest",
                  "--wandb_exit_timeout=240"},
            server.address());
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.err, "");
  const Json both = server.got();
  EXPECT_EQ(both["run_ids"], one["run_ids"]);
  EXPECT_EQ(both["steps"], Json(steps_to(18)));
  EXPECT_EQ(both["exit_code"], 0);
}

TEST_F(WandbOnline, AServerThatIsAwayCostsOneWarning) {
  const StandIn server("away");
  const ProcessResult result =
      train(kShort + Words{"--wandb_exit_timeout=2"}, server.address());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(num_warnings(result.err), 1) << result.err;
  expect_in(result.err, "wandb: not everything was sent within 2 s");
  expect_in(result.err, "to send it: wandb sync ");
  EXPECT_EQ(metric(temp_.path() / "run", "train/loss").size(), 12U);
}

TEST_F(WandbOnline, AServerThatHangsCostsOneWarning) {
  const StandIn server("hang");
  const Training long_run = training(kLong);
  Process process(command_of(long_run), options(long_run, server.address()));
  ASSERT_TRUE(
      wait_for([&] { return server.got()["num_refused"] > 0; }, kPatience))
      << process.err();
  process.send(SIGTERM);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  EXPECT_EQ(num_warnings(result.err), 1) << result.err;
  EXPECT_TRUE(wait_until_gone(process.marker(), kPatience).empty());
}

TEST_F(WandbOnline, RowsArriveWhenTheServerComesBack) {
  const StandIn server("away");
  const Training long_run = training(kLong);
  Process process(command_of(long_run), options(long_run, server.address()));
  ASSERT_TRUE(wait_for_client()) << process.err();
  server.set_mode("ok");
  ASSERT_TRUE(server.wait_for_rows(5)) << client_output();
  server.set_mode("error");
  ASSERT_TRUE(
      wait_for([&] { return server.got()["num_refused"] > 0; }, kPatience));
  const int64_t before = server.num_rows();
  server.set_mode("ok");
  EXPECT_TRUE(server.wait_for_rows(before + 5)) << client_output();
  end(process);
}

TEST_F(WandbOnline, AKilledClientCostsOneWarning) {
  const StandIn server;
  const Training long_run = training(kLong);
  Process process(command_of(long_run), options(long_run, server.address()));
  ASSERT_TRUE(server.wait_for_rows(1)) << process.err() << client_output();
  const pid_t client = find_client(process);
  ASSERT_GT(client, 0);
  ASSERT_EQ(kill(client, SIGKILL), 0);
  ASSERT_TRUE(
      wait_for([&] { return contains(process.err(), "was ended by signal 9"); },
               kPatience));
  const auto steps = [this] {
    return metric(temp_.path() / "run", "train/loss").size();
  };
  EXPECT_TRUE(
      wait_for([&, before = steps()] { return steps() > before; }, kPatience));
  end(process);
  EXPECT_EQ(num_warnings(process.err()), 1) << process.err();
}

TEST_F(WandbOnline, AKilledTrainingLeavesNoClient) {
  for (const int world : {1, 2}) {
    const StandIn server;
    const Training long_run = training(kLong + Words{"--overwrite"}, world);
    Process process(command_of(long_run), options(long_run, server.address()));
    ASSERT_TRUE(server.wait_for_rows(1)) << process.err() << client_output();
    process.send(SIGKILL);
    process.wait();
    EXPECT_TRUE(wait_until_gone(process.marker(), kPatience).empty());
  }
}

TEST_F(WandbOnline, WithoutTheClientOneLineSaysWhatToInstall) {
  const Training short_run = training(kShort);
  ProcessOptions without = options(short_run, "http://127.0.0.1:1");
  without.environment["PATH"] = temp_.path();
  const ProcessResult result = run(command_of(short_run), without);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.err,
            std::string("pip install wandb==") + track::kTestedWandbClient);
  expect_in(result.err, "to send this one later: wandb sync ");
}

// What the client itself refuses is shown with its own words.
TEST_F(WandbOnline, WithoutAKeyTheClientsWordsAreShown) {
  const Training short_run =
      training(kShort + Words{"--wandb_exit_timeout=240"});
  ProcessOptions without = options(short_run, "http://127.0.0.1:1");
  without.environment["WANDB_API_KEY"] = "";
  const ProcessResult result = run(command_of(short_run), without);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(num_warnings(result.err), 1) << result.err;
  expect_in(result.err, "No API key configured");
}

}  // namespace
}  // namespace lockstep::testing
