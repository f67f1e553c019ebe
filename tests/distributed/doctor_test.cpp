// `lockstep doctor` as a program: each check made to fail, its line and exit
// code. Facts that this machine cannot have: tests/unit/doctor.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "support/control_group.h"
#include "support/free_port.h"
#include "support/messages.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class DoctorProgram : public ::testing::Test {
 protected:
  // Without a worker nothing is measured: the other checks take milliseconds.
  ProcessOptions without_worker() const {
    ProcessOptions options = in_folder();
    options.environment["LOCKSTEP_WORKER"] = "/no/such/worker";
    return options;
  }
  ProcessOptions in_folder() const {
    return {.environment = {{"TMPDIR", temp_.path().string()}},
            .folder = folder_.path().string(),
            .timeout_seconds = 600};
  }
  Words doctor(const Words& words) const {
    Words command = {LOCKSTEP_PROGRAM, "doctor"};
    command.insert(command.end(), words.begin(), words.end());
    return command;
  }
  // A shell sets limits or mounts up first.
  Words doctor_after(const std::string& setup, const Words& words,
                     const Words& prefix = {}) const {
    Words command = prefix;
    for (const std::string& word :
         Words{"sh", "-c", setup + " && exec \"$@\"", "sh"}) {
      command.push_back(word);
    }
    for (const std::string& word : doctor(words)) command.push_back(word);
    return command;
  }

  // The line of a check: "FAILURE  port  ...".
  static std::string line_of(const ProcessResult& result,
                             const std::string& check) {
    for (const std::string& line : base::split(result.out, '\n')) {
      const std::string rest = line.substr(std::min<size_t>(line.size(), 9));
      if (rest.starts_with(check + " ")) return line;
    }
    return "";
  }
  static void expect_failure(const ProcessResult& result,
                             const std::string& check, int code,
                             const std::string& text) {
    EXPECT_EQ(result.exit_code, code) << result.out << result.err;
    const std::string line = line_of(result, check);
    EXPECT_TRUE(line.starts_with("FAILURE ")) << result.out << result.err;
    expect_in(line, text);
    expect_in(line, "; mend: ");
  }
  void expect_nothing_left() const {
    EXPECT_TRUE(fs::is_empty(temp_.path()));
    EXPECT_TRUE(fs::is_empty(folder_.path()));
  }

  TempDir temp_;
  TempDir folder_;
};

TEST_F(DoctorProgram, AHeldPort) {
  const ListeningPort taken;
  const std::string port = std::to_string(taken.number());
  for (const Words& words : {Words{"--master-port", port},
                             Words{"train", "tiny", "--master_port", port}}) {
    expect_failure(run(doctor(words), without_worker()), "port", 2,
                   "port " + port + " is taken by process");
  }
  ProcessOptions options = without_worker();
  options.environment["MASTER_PORT"] = port;
  expect_failure(run(doctor({}), options), "port", 2, "is taken");
}

TEST_F(DoctorProgram, AHostNameThatDoesNotResolve) {
  expect_failure(
      run(doctor({"--master-addr", "no-such-host.invalid"}), without_worker()),
      "master address", 2, "'no-such-host.invalid' does not resolve");
  const auto own = run(doctor_after("hostname no-such-host.invalid", {},
                                    {"unshare", "-Ur", "--uts"}),
                       without_worker());
  const std::string line = line_of(own, "host name");
  EXPECT_TRUE(line.starts_with("warning ")) << own.out << own.err;
  expect_in(line, "/etc/hosts");
}

TEST_F(DoctorProgram, ATinySharedMemory) {
  expect_failure(run(doctor_after("mount -t tmpfs -o size=64k tmpfs /dev/shm",
                                  {}, {"unshare", "-Urm"}),
                     without_worker()),
                 "shared memory", 9, "/dev/shm has 64.0 KiB");
}

TEST_F(DoctorProgram, FewOpenFiles) {
  expect_failure(run(doctor_after("ulimit -n 64", {}), without_worker()),
                 "open files", 9, "at most 64 per process");
}

TEST_F(DoctorProgram, LittleMemoryByUlimit) {
  expect_failure(run(doctor_after("ulimit -v 300000", {}), without_worker()),
                 "memory", 9, "a process may take 293.0 MiB (ulimit -v)");
}

TEST_F(DoctorProgram, LittleMemoryByControlGroup) {
  const LimitedGroup group(int64_t{200} << 20);
  if (!group.is_ready()) {
    GTEST_SKIP() << "no right to make a control group; checks_test has it";
  }
  expect_failure(
      run(doctor_after("echo $$ > " + group.processes(), {}), without_worker()),
      "memory", 9, "left of the control group's limit of 200.0 MiB");
}

TEST_F(DoctorProgram, AFullDisk) {
  const std::string disk = (temp_.path() / "disk").string();
  fs::create_directory(disk);
  const Words words = {"train", "tiny", "--save_dir", disk + "/run"};
  expect_failure(run(doctor_after("mount -t tmpfs -o size=1m tmpfs " + disk,
                                  words, {"unshare", "-Urm"}),
                     without_worker()),
                 "disk", 3, "the disk is full");
}

TEST_F(DoctorProgram, NoRightToWrite) {
  const std::string place = (temp_.path() / "closed").string();
  fs::create_directory(place);
  chmod(temp_.path().c_str(), 0755);
  chmod(place.c_str(), 0555);
  // In a user namespace without a mapping nobody is root.
  const auto result =
      run(doctor_after("true", {"train", "tiny", "--save_dir", place + "/run"},
                       {"unshare", "-U"}),
          without_worker());
  expect_failure(result, "save_dir", 3, "cannot be written: Permission denied");
  expect_failure(run(doctor({"train", "tiny", "--save_dir", "/proc/version"}),
                     without_worker()),
                 "save_dir", 3, "/proc/version is not a folder");
}

TEST_F(DoctorProgram, GpusThatAreAskedForAndMissing) {
  ProcessOptions options = without_worker();
  options.environment["CUDA_VISIBLE_DEVICES"] = "";
  expect_failure(
      run(doctor({"train", "tiny", "--device", "cuda", "--nproc", "2"}),
          options),
      "gpus", 2, "0 GPUs visible");
}

TEST_F(DoctorProgram, AMissingWorker) {
  expect_failure(run(doctor({}), without_worker()), "torch", 2,
                 "/no/such/worker");
}

TEST_F(DoctorProgram, MissingData) {
  expect_failure(run(doctor({"train", "dit", "--data_path", "no/such/folder",
                             "--device", "cpu"}),
                     in_folder()),
                 "data", 3, "no/such/folder");
  expect_nothing_left();
}

TEST_F(DoctorProgram, AWrongFlag) {
  expect_failure(
      run(doctor({"train", "tiny", "--epoch_count", "3"}), in_folder()),
      "settings", 2, "unknown flag --epoch_count");
}

TEST_F(DoctorProgram, ACopyThatHangs) {
  ProcessOptions options = in_folder();
  options.environment["LOCKSTEP_DOCTOR_STALL"] = "copies";
  const auto result = run(doctor({"--limit", "3"}), options);
  expect_failure(result, "gpu copies", 6,
                 "copy GPU 0 to GPU 1 did not end within 3.0 s (made to hang "
                 "by LOCKSTEP_DOCTOR_STALL): the known trouble of peer-to-peer "
                 "access behind an IOMMU");
  expect_in(result.out, "NCCL_P2P_DISABLE=1");
  expect_nothing_left();
}

TEST_F(DoctorProgram, AnExchangeThatHangs) {
  ProcessOptions options = in_folder();
  options.environment["LOCKSTEP_DOCTOR_STALL"] = "exchange";
  options.environment["CUDA_VISIBLE_DEVICES"] = "";
  Process process(doctor({"--limit", "3"}), options);
  expect_failure(process.wait(), "exchange shared", 6,
                 "2 processes did not finish an all-reduce within 3.0 s");
  EXPECT_TRUE(wait_until_gone(process.marker(), 60).empty());
  expect_nothing_left();
}

TEST_F(DoctorProgram, AnExchangeOverAWrongInterface) {
  ProcessOptions options = in_folder();
  options.environment["GLOO_SOCKET_IFNAME"] = "nope0";
  options.environment["CUDA_VISIBLE_DEVICES"] = "";
  const auto result = run(doctor({}), options);
  expect_failure(result, "interface", 2, "GLOO_SOCKET_IFNAME=nope0");
  expect_in(line_of(result, "exchange Gloo"), "nope0");
}

TEST_F(DoctorProgram, AHealthyTraining) {
  ProcessOptions options = in_folder();
  options.environment["CUDA_VISIBLE_DEVICES"] = "";
  const auto result = run(doctor({"train", "tiny", "--nproc", "2"}), options);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const char* text :
       {"GiB/s", "1024 training samples; the first and the last one decoded",
        "effective batch 64 = 32 per process", "learning rate 0.003",
        "a step with a batch of 32 per process takes ", "predicted speed-up ",
        "runs/tiny can be written", "/s written; a checkpoint of about "}) {
    if (std::string(text) != "GiB/s") expect_in(result.out, text);
  }
  for (const char* check : {"exchange shared", "exchange Gloo"}) {
    EXPECT_TRUE(line_of(result, check).starts_with("ok ")) << result.out;
  }
  EXPECT_EQ(result.err, "");
  expect_nothing_left();
}

TEST_F(DoctorProgram, SpeaksJson) {
  const auto result = run(doctor({"--json"}), without_worker());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(result.out.starts_with("{\"exit_code\":2,\"checks\":[{"))
      << result.out;
  EXPECT_TRUE(result.out.ends_with("}]}\n"));
}

TEST_F(DoctorProgram, CtrlCLeavesNothingBehind) {
  ProcessOptions options = in_folder();
  options.environment["LOCKSTEP_DOCTOR_STALL"] = "copies";
  Process process(doctor({}), options);
  ASSERT_TRUE(process.wait_for_output("torch  "));
  ASSERT_TRUE(wait_for([&] { return !fs::is_empty(temp_.path()); }, 60));
  process.send(SIGINT);
  EXPECT_EQ(process.wait().exit_code, -SIGINT);
  EXPECT_TRUE(wait_until_gone(process.marker(), 60).empty());
  expect_nothing_left();
}

}  // namespace
}  // namespace lockstep::testing
