// Data-parallel training of your own torch::nn::Module.
//
//   lockstep run --nproc-per-node 2 02_ddp_in_30_lines
//
// Rank 0 prints a falling loss; all ranks end with the same weights.
#include <torch/torch.h>

#include <iostream>

#include "lockstep/lockstep.h"

struct Net : torch::nn::Module {
  torch::nn::Linear hidden{2, 32}, out{32, 1};
  Net() {
    register_module("hidden", hidden);
    register_module("out", out);
  }
  torch::Tensor forward(torch::Tensor x) {
    return out->forward(torch::tanh(hidden->forward(x)));
  }
};

void train() {
  auto world = lockstep::World::from_environment();
  auto net = std::make_shared<Net>();
  net->to(world.device());
  lockstep::DistributedDataParallel<Net> ddp(net, world);
  torch::optim::SGD optimizer(net->parameters(), /*lr=*/0.1);

  torch::manual_seed(world.rank());  // every rank sees its own data
  for (int step = 0; step <= 200; ++step) {
    auto points = torch::rand({64, 2}, world.device());
    auto product = points.select(1, 0) * points.select(1, 1);
    auto loss = torch::mse_loss(ddp(points).squeeze(1), product);
    loss.backward();  // gradients are averaged over the ranks while it runs
    optimizer.step();
    net->zero_grad();
    if (world.is_main() && step % 50 == 0) {
      std::cout << "step " << step << " loss " << loss.item<float>()
                << std::endl;
    }
  }
}

// Turns errors into words, an exit code, and a line in the launcher's report.
int main() { return lockstep::run_program(train); }
