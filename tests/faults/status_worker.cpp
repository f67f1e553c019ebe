// A worker that writes its status page as Lockstep's own programs do.
//
// usage: status_worker MODE. Rank 1 finishes one collective and then stops
// itself (mode "stop"), sleeps, or starts another second one than the others
// (mode "desync"). Once it has, rank 0 starts a second one, and gives up with a
// TimeoutError (modes "stop", "starve", "desync") or never (mode "hang").
//
// Outside of collectives: all ranks sleep in a step of a trainer (mode
// "stuck"), sleep in a program of their own and end well (mode "quiet"), or
// stop themselves and end well when they are continued (mode "suspend").
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/base/error_file.h"
#include "lockstep/base/files.h"
#include "lockstep/base/status.h"
#include "lockstep/base/training_status.h"
#include "lockstep/error.h"

namespace {

using namespace lockstep;

constexpr unsigned kQuietSeconds = 20;

// In a folder that the ranks share: the process that rank 1 is.
std::filesystem::path process_file(const base::Environment& environment) {
  const std::filesystem::path error_file =
      base::find(environment, "TORCHELASTIC_ERROR_FILE").value_or("");
  return error_file.parent_path().parent_path() / "rank_1_process";
}

// Rank 1 is where its mode wants it.
void tell_process(const std::filesystem::path& file) {
  const std::filesystem::path unfinished = file.string() + ".new";
  std::ofstream(unfinished) << getpid();
  std::filesystem::rename(unfinished, file);
}

void wait_for_rank_1(const std::filesystem::path& file,
                     const std::string& mode) {
  const auto is_there = [&] {
    const auto process = base::try_read_file(file);
    if (!process || mode != "stop") return process.has_value();
    const auto stat = base::try_read_file("/proc/" + *process + "/stat");
    return stat && stat->find(") T ") != std::string::npos;
  };
  while (!is_there()) usleep(2'000);
}

int stay_silent(const std::string& mode, const base::Environment& environment) {
  auto training = base::TrainingStatusWriter::from_environment(environment);
  if (mode == "stuck") {
    training.start(4, std::nullopt);
    training.begin(base::Activity::kStep);
    sleep(300);
  }
  if (mode == "suspend") raise(SIGSTOP);
  if (mode == "quiet") sleep(kQuietSeconds);
  return 0;
}

}  // namespace

int main(int count, char** values) {
  const std::string mode = count > 1 ? values[1] : "";
  const base::Environment environment = base::process_environment();
  auto status = base::StatusWriter::from_environment(environment);
  const auto rank = base::find_integer(environment, "RANK").value_or(0);
  status.set_place(static_cast<int>(rank), 2);
  status.set_step(4);
  status.start_collective(base::Collective::kBroadcast, 1024);
  status.finish_collective();
  status.set_phase(base::Phase::kLoadingData);
  if (mode == "stuck" || mode == "quiet" || mode == "suspend") {
    return stay_silent(mode, environment);
  }
  const std::filesystem::path file = process_file(environment);
  if (rank == 1) {
    if (mode == "desync") {
      status.start_collective(base::Collective::kBroadcast, 1024);
    }
    tell_process(file);
    if (mode == "stop") raise(SIGSTOP);
    sleep(600);
    return 0;
  }
  wait_for_rank_1(file, mode);
  status.set_phase(base::Phase::kBackward);
  status.start_collective(base::Collective::kAllReduce, 4096);
  if (mode == "hang") sleep(600);
  const TimeoutError error("all_reduce #2 timed out");
  base::report_to_launcher(error);
  return exit_code(error);
}
