// Lockstep's side of the loader benchmark; python/loader_worker.py is its peer.
//
//   loader_worker read FOLDER WORKERS fast|exact   images per second
//   loader_worker compare FOLDER                   fast against exact decoding
#include <fmt/format.h>
#include <torch/torch.h>

#include "lockstep/base/clock.h"
#include "lockstep/lockstep.h"

namespace {

constexpr int kImageSize = 64;
constexpr int64_t kBatchSize = 64;

enum class Decode { kFast, kExact };

lockstep::ImageFolder images(const std::string& folder, Decode decode) {
  return lockstep::ImageFolder(folder,
                               {.image_size = kImageSize,
                                .random_flip = true,
                                .fast_decode = decode == Decode::kFast});
}

// The first epoch is not counted, as on the peer's side.
void read(const std::string& folder, int workers, Decode decode) {
  const lockstep::Loader loader(
      std::make_shared<lockstep::ImageFolder>(images(folder, decode)), {0, 1},
      c10::Device(c10::DeviceType::CPU),
      {.batch_size = kBatchSize, .workers = workers});
  double images_per_s = 0;
  for (const int number : {0, 1}) {
    const int64_t begin = lockstep::base::monotonic_ns();
    int64_t seen = 0;
    auto epoch = loader.epoch(number);
    for (const auto& batch : epoch) seen += batch.size();
    images_per_s = double(seen) / lockstep::base::seconds_between(
                                      begin, lockstep::base::monotonic_ns());
  }
  fmt::print("{{\"images_per_s\": {:.1f}}}\n", images_per_s);
}

void compare(const std::string& folder) {
  const auto fast = images(folder, Decode::kFast);
  const auto exact = images(folder, Decode::kExact);
  double sum = 0;
  const int64_t count = std::min<int64_t>(fast.size(), 100);
  for (int64_t i = 0; i < count; ++i) {
    const auto difference = fast.get(i, 0)[0].to(torch::kFloat) -
                            exact.get(i, 0)[0].to(torch::kFloat);
    sum += difference.abs().mean().item<double>();
  }
  fmt::print("{{\"mean_abs_difference\": {:.3f}}}\n", sum / double(count));
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_program([&] {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 4 && words[0] == "read") {
      const auto decode = words[3] == "fast" ? Decode::kFast : Decode::kExact;
      return read(words[1], std::stoi(words[2]), decode);
    }
    if (words.size() == 2 && words[0] == "compare") return compare(words[1]);
    throw lockstep::ConfigError(
        "usage: loader_worker read FOLDER WORKERS fast|exact | compare FOLDER");
  });
}
