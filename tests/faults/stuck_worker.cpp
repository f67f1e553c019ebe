// A training as far as the launcher sees: phases, and a collective per step in
// which all ranks wait for each other.
//
// usage: stuck_worker FAULT RANK FOLDER [STEPS]. At step 40 the rank stops
// itself ("stop"), computes without end ("spin"), sleeps while it loads data
// ("sleep"), locks a mutex twice ("deadlock"), or nothing happens ("none");
// it makes
// FOLDER/fault before, and goes on when FOLDER/go exists. "slow": its data take
// longer from the start until that file exists. "lost": all ranks stay in a
// collective. After the last step it ends when FOLDER/end exists.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/status.h"
#include "lockstep/base/training_status.h"

namespace {

using namespace lockstep;

constexpr int kFaultAt = 40;
constexpr int kMostRanks = 8;
constexpr auto kPart = std::chrono::milliseconds(2);
// For a job with a slow rank: long beside the delays of a busy machine.
constexpr auto kLongPart = std::chrono::milliseconds(40);
constexpr auto kSlowPart = std::chrono::milliseconds(400);

std::string go_file;

bool may_go_on() { return access(go_file.c_str(), F_OK) == 0; }

// Steps that each rank has reached.
using Arrivals = std::array<std::atomic<int64_t>, kMostRanks>;

Arrivals& map_arrivals(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Arrivals)) != 0) std::exit(2);
  void* memory = mmap(nullptr, sizeof(Arrivals), PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) std::exit(2);
  close(fd);
  return *static_cast<Arrivals*>(memory);
}

}  // namespace

// Outside of a namespace, so that stacks have plain names.
[[gnu::noinline]] void spin_in_user_code() {
  while (!may_go_on()) {
    for (volatile int i = 0; i < 100'000'000;) i = i + 1;
  }
}

[[gnu::noinline]] void sleep_in_user_code() {
  while (!may_go_on()) std::this_thread::sleep_for(std::chrono::seconds(1));
}

[[gnu::noinline]] void lock_in_user_code() {
  std::timed_mutex mutex;
  mutex.lock();
  std::thread other([&] {
    while (!may_go_on()) usleep(10'000);
    mutex.unlock();
  });
  mutex.lock();
  mutex.unlock();
  other.join();
}

namespace {

void commit(const std::string& fault, const std::string& folder) {
  close(open((folder + "/fault").c_str(), O_CREAT | O_WRONLY, 0600));
  if (fault == "stop") std::raise(SIGSTOP);
  if (fault == "spin") spin_in_user_code();
  if (fault == "sleep") sleep_in_user_code();
  if (fault == "deadlock") lock_in_user_code();
}

// Until the others wait for it in the collective of this step. It gives signs
// of life meanwhile: what follows shall be its only silence.
void wait_for_others(const Arrivals& arrivals, int64_t rank, int64_t size,
                     int64_t step, const std::function<void()>& give_sign) {
  for (int64_t other = 0; other < size; ++other) {
    while (other != rank &&
           arrivals.at(static_cast<size_t>(other)) < step + 1) {
      give_sign();
      usleep(1000);
    }
  }
}

// Where each fault happens.
base::Phase phase_of(const std::string& fault) {
  return fault == "sleep" ? base::Phase::kLoadingData : base::Phase::kForward;
}

}  // namespace

int main(int count, char** values) {
  if (count < 4) return 2;
  const std::string fault = values[1];
  const std::string folder = values[3];
  go_file = folder + "/go";
  const int64_t num_steps = count > 4 ? std::atoll(values[4]) : 60;
  const base::Environment environment = base::process_environment();
  auto status = base::StatusWriter::from_environment(environment);
  auto training = base::TrainingStatusWriter::from_environment(environment);
  const auto rank = base::find_integer(environment, "RANK").value_or(0);
  const auto size = base::find_integer(environment, "WORLD_SIZE").value_or(1);
  const bool is_culprit = rank == std::atoi(values[2]);
  Arrivals& arrivals = map_arrivals(folder + "/arrivals");
  status.set_place(static_cast<int>(rank), static_cast<int>(size));
  training.start(0, std::nullopt);
  const auto part = fault == "slow" ? kLongPart : kPart;
  for (int64_t step = 0; step < num_steps; ++step) {
    const bool is_time = is_culprit && step == kFaultAt;
    const auto fail_in = [&](base::Phase phase) {
      status.set_phase(phase);
      if (!is_time || phase_of(fault) != phase) return;
      wait_for_others(arrivals, rank, size, step,
                      [&] { status.set_phase(phase); });
      commit(fault, folder);
    };
    const int64_t begin = base::monotonic_ns();
    status.set_step(step);
    training.begin(base::Activity::kStep);
    fail_in(base::Phase::kLoadingData);
    const bool is_slow = fault == "slow" && is_culprit && !may_go_on();
    std::this_thread::sleep_for(is_slow ? kSlowPart : part);
    const int64_t loaded = base::monotonic_ns();
    fail_in(base::Phase::kForward);
    std::this_thread::sleep_for(part);
    status.set_phase(base::Phase::kBackward);
    const int64_t computed = base::monotonic_ns();
    status.start_collective(base::Collective::kAllReduce, 4096);
    arrivals.at(static_cast<size_t>(rank)) = step + 1;
    for (int64_t other = 0; other < size; ++other) {
      while (arrivals.at(static_cast<size_t>(other)) < step + 1) usleep(200);
    }
    while (fault == "lost" && step == kFaultAt && !may_go_on()) usleep(10'000);
    status.finish_collective();
    const int64_t exchanged = base::monotonic_ns();
    status.set_phase(base::Phase::kUpdating);
    training.set_num_steps(step + 1);
    training.add_times({.num_steps = 1,
                        .data = base::seconds_between(begin, loaded),
                        .compute = base::seconds_between(loaded, computed),
                        .exchange = base::seconds_between(computed, exchanged),
                        .other = 0});
  }
  training.begin(base::Activity::kFinishing);
  status.set_phase(base::Phase::kClosing);
  const std::string end_file = folder + "/end";
  while (access(end_file.c_str(), F_OK) != 0) usleep(10'000);
  return 0;
}
