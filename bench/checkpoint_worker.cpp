// Lockstep's side of the checkpoint benchmark; python/checkpoint_worker.py is
// its peer.
//
//   checkpoint_worker FOLDER
//
// Prints the seconds to save a file of 1 GB (until it is on the disk), to load
// it from the page cache, and those that BackgroundSaver::save() holds its
// caller; medians of three, after one that is not counted.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "lockstep/base/clock.h"
#include "lockstep/checkpoint/file.h"
#include "lockstep/checkpoint/saver.h"
#include "lockstep/program.h"

namespace {

constexpr int kNumTensors = 200;
constexpr int64_t kNumElements = 1'310'720;
constexpr size_t kRounds = 3;

double median_seconds(const std::function<void()>& prepare,
                      const std::function<void()>& action) {
  std::vector<double> seconds;
  for (size_t round = 0; round <= kRounds; ++round) {
    prepare();
    const int64_t begin = lockstep::monotonic_ns();
    action();
    seconds.push_back(
        lockstep::seconds_between(begin, lockstep::monotonic_ns()));
  }
  std::sort(seconds.begin() + 1, seconds.end());
  return seconds[1 + kRounds / 2];
}

void measure(const std::filesystem::path& folder) {
  lockstep::Tree tree = lockstep::Tree::dict();
  for (int i = 0; i < kNumTensors; ++i) {
    tree["t" + std::to_string(i)] = torch::rand({kNumElements});
  }
  const auto file = folder / "lockstep.pt";
  const auto remove = [&] { std::filesystem::remove(file); };
  const double save =
      median_seconds(remove, [&] { lockstep::save_checkpoint(file, tree); });
  const double load =
      median_seconds([] {}, [&] { lockstep::load_checkpoint(file); });
  lockstep::BackgroundSaver saver;
  const double stall = median_seconds([&] { saver.wait(), remove(); },
                                      [&] { saver.save(file, tree); });
  saver.wait();
  remove();
  fmt::print(
      "{{\"save_s\": {:.4f}, \"load_s\": {:.4f}, \"stall_s\": {:.4f}}}\n", save,
      load, stall);
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_program([&] {
    if (argc != 2) {
      throw lockstep::ConfigError("usage: checkpoint_worker FOLDER");
    }
    measure(argv[1]);
  });
}
