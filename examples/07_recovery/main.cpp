// A loop of your own that goes on when ranks are killed: no step is lost, and
// nothing is read from disk.
//
//   lockstep run --nproc-per-node 3 --recover memory 07_recovery [STEPS]
//
// Every rank holds the whole state: weights and step. A rank that loses another
// one reforms the world and gives its state to the new process. Try it: kill -9
// one of the three while they run; the last line stays the same.
#include <torch/torch.h>

#include <cstdlib>
#include <iostream>

#include "lockstep/lockstep.h"

namespace {

struct State {
  torch::nn::Linear net{8, 1};
  int64_t step = 0;
};

// After ranks were replaced: the rank with the most steps gives them to all.
void share(const lockstep::World& world, State& state) {
  const int64_t step = world.reduce(state.step, lockstep::ReduceOp::kMax);
  const int64_t source =
      world.reduce(state.step == step ? world.rank() : world.size(),
                   lockstep::ReduceOp::kMin);
  for (at::Tensor& weight : state.net->parameters()) {
    at::Tensor values = weight.detach();
    world.broadcast(values, static_cast<int>(source));
  }
  state.step = step;
}

void train(const lockstep::World& world, State& state, int64_t num_steps) {
  if (!world.ranks_without_state().empty()) share(world, state);
  lockstep::DistributedDataParallel ddp(state.net, world);
  torch::optim::SGD optimizer(state.net->parameters(), /*lr=*/0.05);
  world.offer_state();
  while (state.step < num_steps) {
    torch::manual_seed(state.step * world.size() + world.rank());
    const at::Tensor x = torch::randn({16, 8});
    (ddp(x) - x.abs().sum(1, /*keepdim=*/true)).square().mean().backward();
    optimizer.step();
    state.net->zero_grad();
    ++state.step;
    if (world.is_main() && state.step % 500 == 0) {
      std::cout << "step " << state.step << std::endl;
    }
  }
  world.withdraw_state();
}

void run(int64_t num_steps) {
  const auto world = lockstep::World::from_environment();
  torch::manual_seed(1);
  State state;
  for (bool is_done = false; !is_done;) {
    try {
      train(world, state, num_steps);
      is_done = true;
    } catch (const std::exception& error) {
      if (!world.can_reform_after(error)) throw;
      state.net->zero_grad();
      world.reform();
    }
  }
  if (world.is_main()) {
    std::cout << "after " << state.step
              << " steps: " << state.net->bias.item<float>() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t num_steps = argc > 1 ? std::atoll(argv[1]) : 20000;
  return lockstep::run_program([&] { run(num_steps); });
}
