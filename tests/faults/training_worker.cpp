// A training in its 13th step, as far as the launcher sees; the checkpoint of
// step 10 is on disk.
//
// usage: training_worker MODE FOLDER. The step lasts until FOLDER/go exists;
// after a stop signal the training then saves and ends. MODE "hang": saves and
// does not end. "full": cannot save. "fail": rank 1 fails in the step once a
// stop signal came. "crash": invalid memory access in the step.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "lockstep/base/crash_handler.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/status.h"
#include "lockstep/base/training_status.h"

namespace {

volatile std::sig_atomic_t stop_signal = 0;

void wait_for_file(const std::string& path) {
  while (access(path.c_str(), F_OK) != 0) usleep(10'000);
}

}  // namespace

// Outside of a namespace, so that the report has a plain name.
[[gnu::noinline]] void write_to_nowhere() {
  volatile int* volatile nowhere = reinterpret_cast<int*>(16);
  *nowhere = 1;
}

int main(int count, char** values) {
  using namespace lockstep;
  if (count != 3) return 2;
  const std::string mode = values[1];
  const std::string folder = values[2];
  const base::Environment environment = base::process_environment();
  base::install_crash_handler(base::crash_file(environment));
  const auto rank = base::find_integer(environment, "RANK").value_or(0);
  for (const int signal : {SIGINT, SIGTERM}) {
    std::signal(signal, [](int number) { stop_signal = number; });
  }
  auto status = base::StatusWriter::from_environment(environment);
  status.set_place(static_cast<int>(rank), 2);
  status.set_step(12);
  status.set_phase(base::Phase::kForward);
  auto training = base::TrainingStatusWriter::from_environment(environment);
  training.start(12, rank == 0 ? std::optional<int64_t>(10) : std::nullopt);
  training.begin(base::Activity::kStep);
  std::printf("ready %d\n", static_cast<int>(rank));
  std::fflush(stdout);
  if (mode == "crash" && rank == 1) write_to_nowhere();
  if (mode == "fail" && rank == 1) {
    while (stop_signal == 0) usleep(10'000);
    return 3;
  }
  wait_for_file(folder + "/go");
  training.set_num_steps(13);
  training.begin(base::Activity::kSaving);
  training.start_save();
  if (rank == 0 && mode != "full") training.note_saved(13);
  training.begin(base::Activity::kFinishing);
  if (mode == "hang") {
    for (;;) pause();
  }
  return stop_signal == 0 ? 0 : 128 + stop_signal;
}
