// Ranks of real programs and the store: without lockstep run, and with a
// name server that does not answer.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>

#include "support/free_port.h"
#include "support/messages.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using Variables = std::map<std::string, std::string>;
using testing::expect_in;
using testing::free_port;

testing::ProcessOptions options_for(Variables environment) {
  environment["OMP_NUM_THREADS"] = "1";
  return {.environment = std::move(environment),
          .folder = "",
          .ignored_signals = {}};
}

using Task = std::unique_ptr<testing::Process>;

Task start_task(const Variables& environment) {
  return std::make_unique<testing::Process>(
      std::vector<std::string>{EXAMPLES_FOLDER "/01_all_reduce"},
      options_for(environment));
}

Variables slurm_task(const std::string& job, int rank, int size) {
  return {{"SLURM_JOB_ID", job},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", std::to_string(rank)},
          {"SLURM_LOCALID", std::to_string(rank)},
          {"SLURM_NTASKS", std::to_string(size)},
          {"SLURM_STEP_NUM_TASKS", std::to_string(size)},
          {"SLURM_STEP_NUM_NODES", "1"}};
}

Variables open_mpi_task(const std::string& job, int rank, int size) {
  return {{"PMIX_NAMESPACE", job},
          {"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
          {"OMPI_COMM_WORLD_SIZE", std::to_string(size)},
          {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank)},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(size)}};
}

std::string unique(const std::string& name) {
  return name + std::to_string(getpid());
}

void expect_sums(const std::vector<Task>& tasks) {
  for (size_t rank = 0; rank < tasks.size(); ++rank) {
    const auto result = tasks[rank]->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_in(result.out, "rank " + std::to_string(rank) + " of " +
                              std::to_string(tasks.size()) + ": the sum is ");
  }
}

TEST(WithoutALauncher, TasksOfSrunAreOneWorld) {
  std::vector<Task> tasks;
  for (int rank = 0; rank < 3; ++rank) {
    tasks.push_back(start_task(slurm_task(unique("1"), rank, 3)));
  }
  expect_sums(tasks);
}

TEST(WithoutALauncher, JobsOfMpirunAtOnceDoNotMeet) {
  std::vector<std::vector<Task>> jobs(3);
  for (size_t job = 0; job < jobs.size(); ++job) {
    for (int rank = 0; rank < 2; ++rank) {
      jobs[job].push_back(start_task(
          open_mpi_task(unique("job" + std::to_string(job) + "."), rank, 2)));
    }
  }
  for (const auto& tasks : jobs) expect_sums(tasks);
}

// mpiexec names no job: its process, above all tasks, does.
TEST(WithoutALauncher, TasksOfMpiexecAreOneWorld) {
  const auto result = testing::run(
      {"/bin/sh", "-c",
       "export PMI_SIZE=2 MPI_LOCALNRANKS=2\n"
       "PMI_RANK=0 MPI_LOCALRANKID=0 $PROGRAM & first=$!\n"
       "PMI_RANK=1 MPI_LOCALRANKID=1 sh -c '$PROGRAM; exit $?' || exit 1\n"
       "wait $first\n"},
      options_for({{"PROGRAM", EXAMPLES_FOLDER "/01_all_reduce"}}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "rank 0 of 2: the sum is 3");
  expect_in(result.out, "rank 1 of 2: the sum is 3");
}

TEST(WithoutALauncher, SeveralMachinesAreRefused) {
  auto environment = slurm_task("1", 0, 2);
  environment["SLURM_STEP_NUM_NODES"] = "2";
  const auto result = start_task(environment)->wait();
  EXPECT_EQ(result.exit_code, 2);
  expect_in(result.err, "SLURM_STEP_NUM_NODES=2");
}

TEST(WithoutALauncher, TheScriptOfSbatchIsAlone) {
  const auto result =
      start_task(
          {{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}})
          ->wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "rank 0 of 1: the sum is 1");
}

TEST(WithoutALauncher, ALauncherPerTaskIsRefused) {
  for (const Variables& environment :
       {slurm_task("1", 0, 2), open_mpi_task("1", 1, 2)}) {
    const auto result =
        testing::run({LOCKSTEP_PROGRAM, "run", "--nproc=2", "true"},
                     options_for(environment));
    EXPECT_EQ(result.exit_code, 2);
    expect_in(result.err, "lockstep-worker train RECIPE");
  }
}

TEST(WithoutALauncher, RanksByHandMeetAtMasterAddr) {
  std::vector<Task> tasks;
  const std::string port = free_port();
  for (int rank = 0; rank < 2; ++rank) {
    tasks.push_back(start_task({{"RANK", std::to_string(rank)},
                                {"WORLD_SIZE", "2"},
                                {"MASTER_ADDR", "localhost"},
                                {"MASTER_PORT", port}}));
  }
  expect_sums(tasks);
}

// A program between launcher and worker that closes what it inherits.
TEST(JobStore, RanksMeetWithoutTheirDescriptors) {
  const auto result = testing::run(
      {LOCKSTEP_PROGRAM, "run", "--nproc=2", "--no-python", "/bin/bash", "-c",
       "for fd in /proc/self/fd/*; do fd=${fd##*/}; [ $fd -gt 2 ] && "
       "eval \"exec $fd>&-\"; done; exec " EXAMPLES_FOLDER "/01_all_reduce"},
      options_for({}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_in(result.out, "rank 1 of 2: the sum is 3");
}

// In namespaces of its own, where the only name server takes every question and
// answers none.
class SilentNameServer : public ::testing::Test {
 protected:
  SilentNameServer() {
    std::ofstream(folder_.path() / "resolv.conf") << "nameserver 127.0.0.1\n";
    std::ofstream(folder_.path() / "nsswitch.conf") << "hosts: files dns\n";
    std::ofstream(folder_.path() / "run.py") << R"(
import fcntl, socket, struct, subprocess, sys, time
lo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(lo, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x8 | 0x40))
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
begin = time.monotonic()
code = subprocess.run(sys.argv[1:]).returncode
print("seconds", time.monotonic() - begin)
server.setblocking(False)
try:
    server.recv(512)
    print("a name was looked up")
except BlockingIOError:
    print("no name was looked up")
sys.exit(code)
)";
  }

  testing::ProcessResult run(const std::string& command) const {
    const std::string here = folder_.path().string();
    return testing::run({"/usr/bin/unshare", "--map-root-user", "--mount",
                         "--net", "/bin/sh", "-c",
                         "mount --bind " + here +
                             "/resolv.conf /etc/resolv.conf && "
                             "mount --bind " +
                             here +
                             "/nsswitch.conf /etc/nsswitch.conf && "
                             "exec " LOCKSTEP_PYTHON " " +
                             here + "/run.py " + command},
                        options_for({}));
  }

  const testing::TempDir folder_;
};

TEST_F(SilentNameServer, IsNotAskedForAddresses) {
  for (const std::string command :
       {LOCKSTEP_PROGRAM " run --nproc 2 " EXAMPLES_FOLDER "/01_all_reduce",
        LOCKSTEP_PROGRAM " run --nproc 2 --master-addr 127.0.0.1 "
                         "--master-port 29418 " EXAMPLES_FOLDER
                         "/01_all_reduce"}) {
    const auto result = run(command);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_in(result.out, "rank 1 of 2: the sum is 3");
    expect_in(result.out, "no name was looked up");
  }
}

}  // namespace
}  // namespace lockstep
