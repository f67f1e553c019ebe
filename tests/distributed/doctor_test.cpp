// `lockstep doctor` as a program: each check made to fail, its line and exit
// code. Facts that this machine cannot have: tests/unit/doctor.
#include <sys/stat.h>

#include <csignal>
#include <regex>
#include <string_view>

#include "distributed/doctor_program.h"
#include "lockstep/base/files.h"
#include "support/control_group.h"
#include "support/free_port.h"
#include "support/name_lookup.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

// A PNG of one grey pixel.
std::string smallest_image() {
  constexpr std::string_view kDigits =
      "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b5500"
      "00000a49444154789c636800000082008177cd72b60000000049454e44ae426082";
  std::string bytes;
  for (size_t i = 0; i < kDigits.size(); i += 2) {
    bytes += static_cast<char>(
        std::stoi(std::string(kDigits.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

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
  const auto result =
      run(doctor_after(kOnlyHostsFile + " && hostname no-such-host.invalid",
                       {"--master-addr", "no-such-host.invalid"},
                       {"unshare", "-Urm", "--uts"}),
          without_worker());
  expect_failure(result, "master address", 2,
                 "'no-such-host.invalid' does not resolve");
  const std::string own = line_of(result, "host name");
  EXPECT_TRUE(own.starts_with("warning ")) << result.out << result.err;
  expect_in(own, "/etc/hosts");
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

TEST_F(DoctorProgram, ALastSampleThatCannotBeDecoded) {
  const TempDir data;
  for (const char* part : {"train", "val"}) {
    fs::create_directories(data.path() / part / "class");
    for (const char* name : {"a.png", "b.png"}) {
      data.write(std::string(part) + "/class/" + name, smallest_image());
    }
  }
  data.write("train/class/z.png", "a text");
  const auto result = run(
      doctor({"train", "jit", "--data_path", data.path().string(), "--device",
              "cpu", "--img_size=8", "--dim=16", "--depth=1", "--heads=1"}),
      in_folder());
  expect_failure(result, "data", 3, "class/z.png': ");
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
  // Long enough for the worker to load libtorch and name the copy.
  const auto result = run(doctor({"--limit", "20"}), options);
  expect_failure(result, "gpu copies", 6,
                 "copy GPU 0 to GPU 1 did not end within 20.0 s (made to hang "
                 "by LOCKSTEP_DOCTOR_STALL): the known trouble of peer-to-peer "
                 "access behind an IOMMU");
  expect_in(result.out, "NCCL_P2P_DISABLE=1");
  expect_nothing_left();
}

TEST_F(DoctorProgram, ACopyThatArrivesWithOtherData) {
  ProcessOptions options = in_folder();
  options.environment["LOCKSTEP_DOCTOR_STALL"] = "wrong";
  const auto result = run(doctor({}), options);
  expect_failure(result, "gpu copies", 7,
                 "copy GPU 0 to GPU 1 arrived with other data (made so by "
                 "LOCKSTEP_DOCTOR_STALL)");
  expect_nothing_left();
}

TEST_F(DoctorProgram, LeavesTheChildrenOfTheShellBeforeItAlone) {
  const TempDir notes;
  const std::string file = (notes.path() / "child").string();
  ProcessOptions options = in_folder();
  options.environment["LOCKSTEP_DOCTOR_STALL"] = "wrong";
  const auto result =
      run(doctor_after("{ sleep 600 & echo $! > " + file + "; }", {}), options);
  EXPECT_EQ(result.exit_code, 7) << result.out << result.err;
  const auto child = static_cast<pid_t>(std::stoi(base::read_file(file)));
  EXPECT_EQ(kill(child, 0), 0) << "it was ended";
  kill(child, SIGKILL);
}

TEST_F(DoctorProgram, AnExchangeThatHangs) {
  ProcessOptions options = in_folder();
  options.environment["LOCKSTEP_DOCTOR_STALL"] = "exchange";
  options.environment["CUDA_VISIBLE_DEVICES"] = "";
  Process process(doctor({"--limit", "3", "train", "tiny", "--nproc", "2"}),
                  options);
  const auto result = process.wait();
  expect_failure(result, "exchange shared", 6,
                 "2 processes did not finish an all-reduce within 3.0 s");
  // A training would hang as well.
  expect_in(line_of(result, "recipe"),
            "not measured, because of the failures above");
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
  // Six measurements, together within the time that CTest gives.
  const auto result =
      run(doctor({"--limit", "80", "train", "tiny", "--nproc", "2"}), options);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const char* text :
       {"1024 training samples; the first and the last one decoded",
        "effective batch 64 = 32 per process", "learning rate 0.003",
        "a step with a batch of 32 per process takes ", "predicted speed-up ",
        "runs/tiny can be written", "/s written; a checkpoint of about ",
        "for 2 processes with 2 loader threads each"}) {
    expect_in(result.out, text);
  }
  const std::regex bandwidth(
      "^ok .* 2 processes: all-reduce at [0-9]*[1-9][0-9.]* [KMGT]iB/s, "
      "[0-9]+ us for a small one$");
  for (const char* check : {"exchange shared", "exchange Gloo"}) {
    const std::string line = line_of(result, check);
    EXPECT_TRUE(std::regex_match(line, bandwidth)) << line << result.out;
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
  EXPECT_TRUE(find_marked(process.marker()).empty());
  expect_nothing_left();
}

TEST_F(DoctorProgram, CtrlCWhileRanksExchangeLeavesNothingBehind) {
  ProcessOptions options = in_folder();
  options.environment["LOCKSTEP_DOCTOR_STALL"] = "exchange";
  options.environment["CUDA_VISIBLE_DEVICES"] = "";
  Process process(doctor({}), options);
  // The doctor, three processes of its launcher and two workers.
  ASSERT_TRUE(
      wait_for([&] { return find_marked(process.marker()).size() >= 6; }, 120));
  process.send(SIGINT);
  EXPECT_EQ(process.wait().exit_code, -SIGINT);
  EXPECT_TRUE(find_marked(process.marker()).empty());
  expect_nothing_left();
}

}  // namespace
}  // namespace lockstep::testing
