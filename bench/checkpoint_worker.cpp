// Lockstep's side of the checkpoint benchmark; python/checkpoint_worker.py is
// its peer.
//
//   checkpoint_worker save|load FOLDER [cuda]
//
// save: the seconds to save a file of 1 GB (until it is on the disk), and those
// that BackgroundSaver::save() holds its caller; medians of three, after one
// that is not counted. load: the seconds to load that file, once, as a program
// that has just started.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "lockstep/base/clock.h"
#include "lockstep/base/environment.h"
#include "lockstep/checkpoint.h"
#include "lockstep/program.h"
#include "lockstep/tensor/device.h"

namespace {

constexpr int kNumTensors = 200;
constexpr int64_t kNumElements = 1'310'720;
constexpr size_t kRounds = 3;

double median_seconds(const std::function<void()>& prepare,
                      const std::function<void()>& action) {
  std::vector<double> seconds;
  for (size_t round = 0; round <= kRounds; ++round) {
    prepare();
    const int64_t begin = lockstep::base::monotonic_ns();
    action();
    seconds.push_back(
        lockstep::base::seconds_between(begin, lockstep::base::monotonic_ns()));
  }
  std::sort(seconds.begin() + 1, seconds.end());
  return seconds[1 + kRounds / 2];
}

void measure_save(const std::filesystem::path& file, c10::Device device) {
  lockstep::Tree tree = lockstep::Tree::dict();
  for (int i = 0; i < kNumTensors; ++i) {
    tree["t" + std::to_string(i)] = torch::rand({kNumElements}).to(device);
  }
  lockstep::BackgroundSaver saver;
  const auto remove = [&] {
    saver.wait();
    std::filesystem::remove(file);
    lockstep::tensor::synchronize(device);
  };
  const double stall = median_seconds(remove, [&] { saver.save(file, tree); });
  const double save =
      median_seconds(remove, [&] { lockstep::save_checkpoint(file, tree); });
  fmt::print("{{\"save_s\": {:.4f}, \"stall_s\": {:.4f}}}\n", save, stall);
}

void measure_load(const std::filesystem::path& file, c10::Device /*device*/) {
  const int64_t begin = lockstep::base::monotonic_ns();
  const lockstep::Tree tree = lockstep::load_checkpoint(file);
  fmt::print(
      "{{\"load_s\": {:.4f}}}\n",
      lockstep::base::seconds_between(begin, lockstep::base::monotonic_ns()));
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_program([&] {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() < 2 || (words[0] != "save" && words[0] != "load")) {
      throw lockstep::ConfigError(
          "usage: checkpoint_worker save|load FOLDER [cuda]");
    }
    const bool is_cuda = words.size() > 2 && words[2] == "cuda";
    const auto device = lockstep::tensor::take_device(
        is_cuda ? lockstep::DeviceChoice::kCuda : lockstep::DeviceChoice::kCpu,
        0, lockstep::base::process_environment());
    const auto measure = words[0] == "save" ? measure_save : measure_load;
    measure(std::filesystem::path(words[1]) / "lockstep.pt", device);
  });
}
