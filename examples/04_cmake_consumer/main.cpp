// Fits y = 3x - 1 on all ranks and shows that they end with equal parameters.
//
// Prints, on two ranks:
//   2 ranks: parameters are equal on all of them; loss below 0.01: yes
#include <lockstep/lockstep.h>
#include <torch/torch.h>

#include <iostream>
#include <set>
#include <string>

void train() {
  const auto world = lockstep::World::from_environment();
  torch::manual_seed(1);  // The same start is not needed: rank 0's is sent.
  torch::nn::Linear line(1, 1);
  line->to(world.device());
  lockstep::DistributedDataParallel ddp(line, world);
  torch::optim::SGD optimizer(line->parameters(), /*lr=*/0.1);

  torch::manual_seed(10 + world.rank());  // Each rank sees other samples.
  torch::Tensor loss;
  for (int step = 0; step < 200; ++step) {
    const auto x = torch::randn({16, 1}).to(world.device());
    loss = torch::mse_loss(ddp(x), 3 * x - 1);
    loss.backward();
    optimizer.step();
    line->zero_grad();
  }

  const auto mine = std::to_string(lockstep::fingerprint(line->parameters()));
  const auto all = world.gather_texts(mine);
  const bool equal = std::set<std::string>(all.begin(), all.end()).size() == 1;
  if (world.is_main()) {
    std::cout << world.size() << " ranks: parameters are "
              << (equal ? "equal" : "NOT equal")
              << " on all of them; loss below 0.01: "
              << (loss.item<float>() < 0.01F ? "yes" : "no") << std::endl;
  }
}

int main() { return lockstep::run_program(train); }
