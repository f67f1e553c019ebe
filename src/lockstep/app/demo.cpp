#include "lockstep/app/demo.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/files.h"
#include "lockstep/lockstep.h"

namespace lockstep {
namespace {

constexpr int64_t kGlobalBatch = 128;
constexpr int64_t kPixels = 24;
constexpr int64_t kClasses = 10;
constexpr int64_t kSamples = 2560;
constexpr int kEpochs = 4;
constexpr const char* kResultVariable = "LOCKSTEP_DEMO_RESULT";

// A small image classifier: much to compute, few parameters to send.
struct Net : torch::nn::Module {
  torch::nn::Conv2d first{torch::nn::Conv2dOptions(1, 32, 3).padding(1)};
  torch::nn::Conv2d second{torch::nn::Conv2dOptions(32, 64, 3).padding(1)};
  torch::nn::Linear last{64 * 6 * 6, kClasses};
  Net() {
    register_module("first", first);
    register_module("second", second);
    register_module("last", last);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(first(x)), 2);
    x = torch::max_pool2d(torch::relu(second(x)), 2);
    return last(x.flatten(1));
  }
};

// Ten noisy patterns: a class is where its pattern hides.
std::shared_ptr<TensorDataset> make_data() {
  auto generator = at::detail::createCPUGenerator(1);
  const auto patterns =
      torch::randn({kClasses, 1, kPixels, kPixels}, generator);
  const auto labels =
      torch::randint(kClasses, {kSamples}, generator, torch::kLong);
  const auto noise = torch::randn({kSamples, 1, kPixels, kPixels}, generator);
  return std::make_shared<TensorDataset>(std::vector<torch::Tensor>{
      0.3 * patterns.index_select(0, labels) + noise, labels});
}

std::vector<std::string> weights_of_all_ranks(const World& world,
                                              const Net& net) {
  return world.gather_texts(
      fmt::format("{:016x}", fingerprint(net.parameters())));
}

void train_as_rank() {
  const World world = World::from_environment();
  torch::manual_seed(7);
  // Rounded products would make one and two processes drift apart.
  at::globalContext().setAllowTF32CuDNN(false);
  auto net = std::make_shared<Net>();
  net->to(world.device());
  DistributedDataParallel<Net> ddp(net, world);
  torch::optim::SGD optimizer(
      net->parameters(), torch::optim::SGDOptions(/*lr=*/0.05).momentum(0.9));
  const Loader loader(
      make_data(), world,
      {.batch_size = kGlobalBatch / world.size(), .workers = 1, .seed = 7});

  double mean_loss = 0;
  int64_t step = 0;
  const int64_t begin = monotonic_ns();
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    double loss_sum = 0;
    auto batches = loader.epoch(epoch);
    for (const Batch& batch : batches) {
      world.status().set_step(step++);
      auto loss = torch::nn::functional::cross_entropy(ddp(batch[0]), batch[1]);
      loss.backward();
      optimizer.step();
      net->zero_grad();
      loss_sum += loss.item<double>();
    }
    mean_loss =
        world.reduce(loss_sum / static_cast<double>(loader.batches_per_epoch()),
                     ReduceOp::kMean);
    if (world.is_main()) {
      fmt::print("  epoch {} of {}: loss {:.4f}\n", epoch + 1, kEpochs,
                 mean_loss);
      std::fflush(stdout);
    }
  }
  synchronize(world.device());
  const double seconds = seconds_between(begin, monotonic_ns());
  const nlohmann::json result = {
      {"loss", mean_loss},
      {"step_ms", 1e3 * seconds / step},
      {"device", world.device().str()},
      {"gpus", num_usable_gpus()},
      {"weights", weights_of_all_ranks(world, *net)}};
  if (world.is_main()) {
    write_file_atomically(std::getenv(kResultVariable), result.dump());
  }
}

// Starts `lockstep run` beside this program and waits for it.
int launch(int num_processes) {
  const std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe");
  std::vector<std::string> words = {self.parent_path() / "lockstep",
                                    "run",
                                    "--share-gpus",
                                    "--nproc-per-node",
                                    std::to_string(num_processes),
                                    self,
                                    "demo"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawn(&pid, words[0].c_str(), nullptr, nullptr, arguments.data(),
                  environ) != 0) {
    throw IoError("cannot start " + words[0] + "; build it first");
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string equality(const nlohmann::json& weights) {
  for (const auto& of_rank : weights) {
    if (of_rank != weights[0]) return "DIFFERENT on the ranks";
  }
  return weights.size() == 1 ? "" : "equal on all ranks";
}

void print_row(int num_processes, const nlohmann::json& result) {
  const double step_ms = result["step_ms"];
  fmt::print(
      "  {:>9}  {:>11}  {:>7.1f} ms  {:>9.0f}  {:>9.4f}  {} {}\n",
      num_processes,
      fmt::format("{} x {}", num_processes, kGlobalBatch / num_processes),
      step_ms, 1e3 * kGlobalBatch / step_ms, result["loss"].get<double>(),
      result["weights"][0].get<std::string>(), equality(result["weights"]));
}

void print_summary(const std::vector<nlohmann::json>& results) {
  fmt::print(
      "\n  processes        batch        step  samples/s       loss  "
      "weights\n");
  print_row(1, results[0]);
  print_row(2, results[1]);
  fmt::print(
      "\nTwo processes took {:.2f} of the time of one per step, on {} with {} "
      "thread(s) each.\n",
      results[1]["step_ms"].get<double>() / results[0]["step_ms"].get<double>(),
      results[1]["device"].get<std::string>(), std::getenv("OMP_NUM_THREADS"));
  if (results[1]["gpus"] == 1) {
    fmt::print("They share the one GPU there is: no speed-up can be seen.\n");
  }
}

int compare_one_and_two() {
  const auto folder = make_unique_folder(std::filesystem::temp_directory_path(),
                                         "lockstep-demo-");
  const std::filesystem::path file = folder / "result.json";
  setenv(kResultVariable, file.c_str(), 1);
  // The same for both, so that the comparison is one of processes.
  setenv("OMP_NUM_THREADS", "1", /*overwrite=*/0);
  std::vector<nlohmann::json> results;
  int code = 0;
  for (const int num_processes : {1, 2}) {
    fmt::print("lockstep run --nproc-per-node {} lockstep-worker demo\n",
               num_processes);
    std::fflush(stdout);
    code = launch(num_processes);
    if (code != 0) break;
    results.push_back(nlohmann::json::parse(read_file(file)));
  }
  std::filesystem::remove_all(folder);
  if (code == 0) print_summary(results);
  return code;
}

}  // namespace

int run_demo() {
  if (std::getenv(kResultVariable) == nullptr) return compare_one_and_two();
  train_as_rank();
  return 0;
}

}  // namespace lockstep
