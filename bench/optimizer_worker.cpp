// Lockstep's side of the optimizer benchmark; python/optimizer_worker.py is its
// peer. Prints the time of the fastest AdamW step as one JSON
// line: whatever else runs on the machine only adds to it.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <limits>

#include "lockstep/base/clock.h"
#include "lockstep/error.h"
#include "lockstep/optimizer.h"
#include "lockstep/program.h"

namespace {

// 28.5 million parameters in 146 tensors: a transformer of 12 layers, 440 wide.
std::vector<torch::Tensor> make_parameters() {
  constexpr int64_t kWidth = 440;
  const std::vector<std::vector<int64_t>> layer = {{3 * kWidth, kWidth},
                                                   {3 * kWidth},
                                                   {kWidth, kWidth},
                                                   {kWidth},
                                                   {4 * kWidth, kWidth},
                                                   {4 * kWidth},
                                                   {kWidth, 4 * kWidth},
                                                   {kWidth},
                                                   {kWidth},
                                                   {kWidth},
                                                   {kWidth},
                                                   {kWidth}};
  std::vector<std::vector<int64_t>> shapes = {{1000, kWidth}, {256, kWidth}};
  for (int i = 0; i < 12; ++i) {
    shapes.insert(shapes.end(), layer.begin(), layer.end());
  }
  torch::manual_seed(0);
  std::vector<torch::Tensor> parameters;
  for (const auto& shape : shapes) {
    parameters.push_back(torch::randn(shape).requires_grad_());
    parameters.back().mutable_grad() = torch::randn(shape);
  }
  return parameters;
}

double fastest_step_ms(int num_steps) {
  lockstep::AdamW optimizer(make_parameters());
  double fastest = std::numeric_limits<double>::infinity();
  for (int step = -3; step < num_steps; ++step) {
    const int64_t begin = lockstep::base::monotonic_ns();
    optimizer.step();
    const int64_t end = lockstep::base::monotonic_ns();
    if (step < 0) continue;
    fastest =
        std::min(fastest, 1e3 * lockstep::base::seconds_between(begin, end));
  }
  return fastest;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_program([&] {
    if (argc != 2) throw lockstep::ConfigError("usage: optimizer_worker N");
    fmt::print("{{\"step_ms\": {:.3f}}}\n",
               fastest_step_ms(std::stoi(argv[1])));
  });
}
