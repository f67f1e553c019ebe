// Lockstep's side of the DDP benchmarks; python/ddp_worker.py is its peer.
//
//   ddp_worker wrapper N   one process: a bare loop and the wrapped one by
//   turns ddp_worker steps N     every rank: median time of a step, as one JSON
//   line of rank 0 ddp_worker first       ends with the first step
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/lockstep.h"

namespace {

constexpr int64_t kBatch = 32;

// 8.4 million parameters.
struct Mlp : torch::nn::Module {
  torch::nn::Linear a{1024, 2048}, b{2048, 2048}, c{2048, 1024};
  Mlp() {
    register_module("a", a);
    register_module("b", b);
    register_module("c", c);
  }
  torch::Tensor forward(torch::Tensor x) {
    return c(torch::relu(b(torch::relu(a(x)))));
  }
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <typename Step>
double time_ms(Step step) {
  const int64_t begin = lockstep::base::monotonic_ns();
  step();
  return 1e3 *
         lockstep::base::seconds_between(begin, lockstep::base::monotonic_ns());
}

// Gradients keep their storage, in the bare loop as in the wrapped one.
template <typename Forward>
void train_step(Forward& forward, Mlp& net, torch::optim::SGD& optimizer,
                const torch::Tensor& x) {
  forward(x).square().mean().backward();
  optimizer.step();
  net.zero_grad(/*set_to_none=*/false);
}

void measure_wrapper(int rounds) {
  const auto world = lockstep::World::from_environment();
  const auto x = torch::randn({kBatch, 1024});
  auto bare = std::make_shared<Mlp>();
  auto wrapped = std::make_shared<Mlp>();
  lockstep::DistributedDataParallel<Mlp> ddp(wrapped, world);
  torch::optim::SGD bare_optimizer(bare->parameters(), 0.01);
  torch::optim::SGD wrapped_optimizer(wrapped->parameters(), 0.01);
  const auto bare_forward = [&](const torch::Tensor& in) {
    return bare->forward(in);
  };
  std::vector<double> ratios;
  std::vector<double> bare_times;
  for (int round = -5; round < rounds; ++round) {
    const double b =
        time_ms([&] { train_step(bare_forward, *bare, bare_optimizer, x); });
    const double w =
        time_ms([&] { train_step(ddp, *wrapped, wrapped_optimizer, x); });
    if (round < 0) continue;
    ratios.push_back(w / b);
    bare_times.push_back(b);
  }
  fmt::print("{{\"ratio\": {:.4f}, \"bare_ms\": {:.2f}}}\n", median(ratios),
             median(bare_times));
}

void measure_steps(int num_steps) {
  const auto world = lockstep::World::from_environment();
  torch::manual_seed(0);
  auto net = std::make_shared<Mlp>();
  lockstep::DistributedDataParallel<Mlp> ddp(net, world);
  torch::optim::SGD optimizer(net->parameters(), 0.01);
  const auto x = torch::randn({kBatch, 1024});
  std::vector<double> times;
  for (int step = -5; step < num_steps; ++step) {
    const double t = time_ms([&] { train_step(ddp, *net, optimizer, x); });
    if (step >= 0) times.push_back(t);
  }
  if (world.is_main()) fmt::print("{{\"step_ms\": {:.3f}}}\n", median(times));
}

void first_step() {
  const auto world = lockstep::World::from_environment();
  auto net = std::make_shared<Mlp>();
  lockstep::DistributedDataParallel<Mlp> ddp(net, world);
  torch::optim::SGD optimizer(net->parameters(), 0.01);
  train_step(ddp, *net, optimizer, torch::randn({kBatch, 1024}));
  if (world.is_main()) {
    fmt::print("first step done\n");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_program([&] {
    const std::string mode = argc > 1 ? argv[1] : "";
    const int count = argc > 2 ? std::stoi(argv[2]) : 0;
    if (mode == "wrapper") return measure_wrapper(count);
    if (mode == "steps") return measure_steps(count);
    if (mode == "first") return first_step();
    throw lockstep::ConfigError(
        "usage: ddp_worker wrapper N | steps N | first");
  });
}
