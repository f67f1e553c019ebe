// Processes that wait to take the place of a rank that dies: what they are
// while they wait, as ranks, and when something happens to them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>

#include "distributed/training.h"
#include "distributed/training_processes.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

constexpr double kPatience = 200;  // The machine may be busy.

std::string proc_file(pid_t pid, const std::string& name) {
  return base::try_read_file("/proc/" + std::to_string(pid) + "/" + name)
      .value_or("");
}

std::string proc_link(pid_t pid, const std::string& name) {
  std::error_code error;
  return fs::read_symlink("/proc/" + std::to_string(pid) + "/" + name, error)
      .string();
}

// A line of /proc/PID/status.
std::string status_line(pid_t pid, const std::string& name) {
  for (const std::string& line : base::split(proc_file(pid, "status"), '\n')) {
    if (line.starts_with(name + ":")) return line;
  }
  return "";
}

std::vector<std::string> open_files(pid_t pid) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error)) {
    files.push_back(proc_link(pid, "fd/" + entry.path().filename().string()));
  }
  return files;
}

bool is_rank0(pid_t pid) {
  return contains(proc_file(pid, "environ"), std::string("\0RANK=0\0", 8));
}

pid_t parent_of(pid_t pid) {
  const auto fields = stat_fields(pid);
  return fields.size() < 2
             ? 0
             : static_cast<pid_t>(base::parse_integer(fields[1]).value_or(0));
}

// A training of the recipe tiny without end.
class SpareProcess : public ::testing::Test {
 protected:
  Training training(int world, const Words& more = {}) const {
    return {.world = world,
            .folder = temp_.path() / "run",
            .flags = Words{"--n_steps=10000000", "--log_every=50",
                           "--recover=memory"} +
                     more};
  }

  void start(const Training& training,
             const std::map<std::string, std::string>& environment = {}) {
    num_kills_ = 0;
    ProcessOptions options = process_options(training);
    options.timeout_seconds = kPatience;
    options.environment.insert(environment.begin(), environment.end());
    world_ = training.world;
    process_.emplace(command_of(training), options);
    ASSERT_TRUE(process_->wait_for_output("step 50/", kPatience))
        << process_->err();
  }

  // Not one of `others`; 0 when none comes.
  pid_t waiting_spare(const std::set<pid_t>& others = {}) const {
    pid_t found = 0;
    EXPECT_TRUE(comes([&] {
      for (const pid_t pid : waiting_spares_of(*process_)) {
        if (!others.contains(pid)) found = pid;
      }
      return found != 0;
    })) << process_->err();
    return found;
  }

  std::set<pid_t> ranks() const {
    std::set<pid_t> pids;
    EXPECT_TRUE(comes([&] {
      pids.clear();
      for (const auto& rank : ranks_of(*process_)) pids.insert(rank.pid);
      return static_cast<int>(pids.size()) == world_;
    })) << process_->err();
    return pids;
  }

  bool comes(const std::function<bool()>& condition) const {
    const auto has_ended = [&] {
      return stat_fields(process_->pid()).at(0) == "Z";
    };
    return wait_for([&] { return condition() || has_ended(); }, kPatience) &&
           !has_ended();
  }

  int count(const std::string& part) const {
    const std::string text = process_->out();
    int number = 0;
    for (auto at = text.find(part); at != std::string::npos;
         at = text.find(part, at + 1)) {
      ++number;
    }
    return number;
  }

  // Then all ranks hold the state again.
  void expect_training_goes_on(int num_recoveries) {
    ASSERT_TRUE(comes([&] {
      return count("nothing is repeated") >= num_recoveries;
    })) << process_->err();
    const int before = count(" loss ");
    ASSERT_TRUE(comes([&] { return count(" loss ") > before + 1; }))
        << process_->err();
  }

  void kill_rank(pid_t pid) {
    kill(pid, SIGKILL);
    expect_training_goes_on(++num_kills_);
  }

  ProcessResult stop() {
    process_->send(SIGTERM);
    const ProcessResult result = process_->wait();
    EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
    EXPECT_TRUE(wait_until_gone(process_->marker(), kPatience).empty());
    return result;
  }

  TempDir temp_;
  int world_ = 0;
  int num_kills_ = 0;
  std::optional<Process> process_;
};

TEST_F(SpareProcess, TakesThePlaceOfARankThatDiesAndLeavesAnother) {
  start(training(2));
  pid_t spare = waiting_spare();
  for (int turn = 0; turn < 3; ++turn) {
    const std::set<pid_t> before = ranks();
    EXPECT_FALSE(before.contains(spare));
    kill_rank(*before.begin());
    EXPECT_TRUE(ranks().contains(spare));
    spare = waiting_spare({spare});
    EXPECT_EQ(spares_of(*process_).size(), 1U);
  }
  const ProcessResult result = stop();
  EXPECT_EQ(result.err.find("spare"), std::string::npos) << result.err;
}

// Descriptors that the launcher was started with aside, which ranks have, too.
TEST_F(SpareProcess, HoldsNothingWhileItWaits) {
  start(training(2));
  const pid_t first = waiting_spare();
  kill_rank(*ranks().begin());
  const pid_t spare = waiting_spare({first});
  const std::vector<std::string> files = open_files(spare);
  const auto count_of = [&](const std::string& beginning) {
    return std::ranges::count_if(files, [&](const std::string& file) {
      return file.starts_with(beginning);
    });
  };
  EXPECT_EQ(count_of("socket:"), 1) << base::join(files, " ");
  for (const char* kind : {"/memfd:", "anon_inode:", "/dev/nvidia"}) {
    EXPECT_EQ(count_of(kind), 0) << base::join(files, " ");
  }
  for (const pid_t rank : ranks()) {
    EXPECT_EQ(count_of(proc_link(rank, "fd/1")), 0);
    EXPECT_EQ(count_of(proc_link(rank, "fd/2")), 0);
  }
  EXPECT_EQ(status_line(spare, "Threads"), "Threads:\t1");
  for (const char* library : {"libcuda.so", "libtorch_cuda", "libnccl"}) {
    EXPECT_EQ(proc_file(spare, "maps").find(library), std::string::npos);
  }
  stop();
}

// What a process that was started as a rank has.
TEST_F(SpareProcess, IsARankLikeTheOthersAfterwards) {
  start(
      training(2, {"--log-dir", (temp_.path() / "logs").string(), "--tee=3"}));
  const pid_t first = waiting_spare();
  const std::set<pid_t> at_start = ranks();
  kill_rank(*std::ranges::find_if(at_start, is_rank0));
  // A copy of the first, and no child of it.
  const pid_t second = waiting_spare({first});
  const std::set<pid_t> before = ranks();
  const pid_t started =
      *std::ranges::find_if(before, [&](pid_t pid) { return pid != first; });
  for (const pid_t pid : {first, second}) {
    SCOPED_TRACE(pid == first ? "rank" : "copy");
    EXPECT_EQ(parent_of(pid), parent_of(started));
    EXPECT_EQ(getpgid(pid), pid);
    EXPECT_EQ(getsid(pid), pid);
    EXPECT_EQ(proc_link(pid, "cwd"), proc_link(started, "cwd"));
    EXPECT_EQ(proc_file(pid, "limits"), proc_file(started, "limits"));
    EXPECT_EQ(proc_file(pid, "oom_score_adj"),
              proc_file(started, "oom_score_adj"));
    for (const char* line : {"Cpus_allowed_list", "Seccomp", "Umask"}) {
      EXPECT_EQ(status_line(pid, line), status_line(started, line));
    }
  }
  // Signals are blocked while a thread is made.
  for (const char* line : {"SigBlk", "SigIgn", "SigCgt"}) {
    EXPECT_TRUE(comes([&] {
      return status_line(first, line) == status_line(started, line);
    })) << status_line(first, line)
        << " and " << status_line(started, line);
  }
  EXPECT_EQ(command_line(first), command_line(started));
  EXPECT_EQ(proc_file(first, "comm"), proc_file(started, "comm"));
  for (const char* stream : {"fd/1", "fd/2"}) {
    EXPECT_TRUE(proc_link(first, stream).starts_with("pipe:"));
    EXPECT_NE(proc_link(first, stream), proc_link(started, stream));
  }
  EXPECT_EQ(proc_link(first, "fd/0"), proc_link(started, "fd/0"));
  EXPECT_EQ(count("[default0]:rank(s) 0 have been started"), 1)
      << process_->out();
  stop();
}

TEST_F(SpareProcess, IsNotNeededWhereItWasKilled) {
  start(training(2));
  const pid_t spare = waiting_spare();
  ASSERT_EQ(kill(spare, SIGKILL), 0);
  ASSERT_TRUE(comes([&] { return spares_of(*process_).empty(); }));
  kill_rank(*ranks().begin());
  // Now there is one again.
  const pid_t next = waiting_spare({spare});
  kill_rank(*ranks().begin());
  EXPECT_TRUE(ranks().contains(next));
  stop();
}

TEST_F(SpareProcess, OfTwoRanksThatDieTogetherOneIsStarted) {
  start(training(3));
  const pid_t spare = waiting_spare();
  const std::set<pid_t> before = ranks();
  // Both are dead before the launcher looks.
  const pid_t keeper = parent_of(spare);
  ASSERT_EQ(kill(keeper, SIGSTOP), 0);
  auto victim = before.begin();
  kill(*victim++, SIGKILL);
  kill(*victim++, SIGKILL);
  const pid_t survivor = *victim;
  ASSERT_EQ(kill(keeper, SIGCONT), 0);
  expect_training_goes_on(1);
  EXPECT_TRUE(ranks().contains(spare));
  EXPECT_TRUE(ranks().contains(survivor));
  waiting_spare({spare});
  stop();
}

TEST_F(SpareProcess, DiesWithItsLauncher) {
  for (const bool kills_keeper : {true, false}) {
    SCOPED_TRACE(kills_keeper ? "keeper" : "front");
    fs::remove_all(temp_.path() / "run");
    start(training(2));
    const pid_t first = waiting_spare();
    kill_rank(*ranks().begin());
    const pid_t spare = waiting_spare({first});
    kill(kills_keeper ? parent_of(spare) : process_->pid(), SIGKILL);
    process_->wait();
    EXPECT_TRUE(wait_until_gone(process_->marker(), kPatience).empty());
  }
}

TEST_F(SpareProcess, MayBeStoppedWhenTheJobEnds) {
  start(training(2));
  ASSERT_EQ(kill(waiting_spare(), SIGSTOP), 0);
  stop();
}

TEST_F(SpareProcess, NoneIsStartedWhereNoneIsWanted) {
  start(training(2, {"--spares=0"}));
  kill_rank(*ranks().begin());
  EXPECT_TRUE(spares_of(*process_).empty());
  stop();
}

TEST_F(SpareProcess, ThereMayBeSeveral) {
  start(training(3, {"--spares=2"}));
  ASSERT_TRUE(comes([&] { return waiting_spares_of(*process_).size() == 2; }));
  stop();
}

TEST_F(SpareProcess, AWorkerOfTheUsersOwnCanBeOne) {
  const fs::path worker = temp_.path() / "own-worker";
  fs::create_symlink(OWN_RECIPE, worker);
  Training own = training(2);
  own.recipe = "ring";
  start(own, {{"LOCKSTEP_WORKER", worker.string()}});
  const pid_t spare = waiting_spare();
  kill_rank(*ranks().begin());
  EXPECT_TRUE(ranks().contains(spare));
  stop();
}

// LOCKSTEP_WORKER may name an older one.
TEST_F(SpareProcess, AWorkerThatKnowsNoneTrainsWithout) {
  const std::string worker = temp_.write_script(
      "old-worker",
      std::string(
          "#!/bin/sh\n[ \"$1\" = spare ] && echo no such command && exit 2\n") +
          "exec " + WORKER_PROGRAM + " \"$@\"\n");
  start(training(2), {{"LOCKSTEP_WORKER", worker}});
  kill_rank(*ranks().begin());
  const ProcessResult result = stop();
  EXPECT_EQ((result.out + result.err).find("no such command"),
            std::string::npos)
      << result.out << result.err;
}

}  // namespace
}  // namespace lockstep::testing
