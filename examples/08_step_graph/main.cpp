// A small transformer of fused layers, in mixed precision and with CUDA graphs
// where there are GPUs. It learns to add up digits, modulo 10.
//
//   lockstep run --nproc-per-node 2 08_step_graph [STEPS]
#include <torch/torch.h>

#include <cstdlib>
#include <iostream>

#include "lockstep/lockstep.h"

namespace {

using lockstep::FusedActivation;
constexpr int64_t kTokens = 8, kWidth = 64, kHeads = 4;

struct Transformer : torch::nn::Module {
  torch::nn::Linear in{18, kWidth}, qkv{kWidth, 3 * kWidth},
      proj{kWidth, kWidth}, up{kWidth, 8 * kWidth}, down{4 * kWidth, kWidth},
      out{kWidth, 10};
  Transformer() {
    for (auto& [name, layer] : {std::pair{"in", in},
                                {"qkv", qkv},
                                {"up", up},
                                {"proj", proj},
                                {"down", down},
                                {"out", out}}) {
      register_module(name, layer);
    }
  }
  at::Tensor forward(const at::Tensor& tokens) {  // One-hot: digit and place.
    const at::Tensor x = in(tokens).to(at::kFloat);
    const at::Tensor normed = lockstep::fused_residual_norm(x, {}).normed;
    const auto heads = lockstep::fused_linear(normed, qkv->weight, qkv->bias)
                           .view({-1, kTokens, 3, kHeads, kWidth / kHeads})
                           .transpose(1, 3)
                           .unbind(2);
    const at::Tensor mixed =
        at::scaled_dot_product_attention(heads[0], heads[1], heads[2], {}, 0,
                                         /*is_causal=*/true)
            .transpose(1, 2)
            .flatten(2);
    const auto middle = lockstep::fused_residual_norm(
        x, {.branch = lockstep::fused_linear(mixed, proj->weight),
            .branch_bias = proj->bias});
    const at::Tensor hidden = lockstep::fused_linear_activation(
        middle.normed, up->weight, up->bias, FusedActivation::kSwiGlu);
    const auto end = lockstep::fused_residual_norm(
        middle.sum, {.branch = lockstep::fused_linear(hidden, down->weight),
                     .branch_bias = down->bias});
    return lockstep::fused_linear(end.normed, out->weight, out->bias);
  }
};

void train(int64_t num_steps) {
  const auto world = lockstep::World::from_environment();
  const lockstep::TrainingStream stream(world);
  torch::manual_seed(1);
  const auto net = std::make_shared<Transformer>();
  net->to(world.device());
  lockstep::DistributedDataParallel<Transformer> ddp(net, world);
  lockstep::AdamW optimizer(net->parameters());
  lockstep::StepGraph step(
      world, optimizer,
      [&](const auto& in) {
        const at::Tensor logits = ddp(in[0]).flatten(0, 1).to(at::kFloat);
        return torch::cross_entropy_loss(logits, in[1].flatten());
      },
      {.max_grad_norm = 1, .autocast = at::kBFloat16, .abandon = [&] {
         ddp.abandon_step();
       }});
  for (int64_t i = 1; i <= num_steps; ++i) {
    torch::manual_seed(i * world.size() + world.rank());
    const at::Tensor digits = torch::randint(10, {64, kTokens});
    const at::Tensor tokens =
        torch::cat({torch::one_hot(digits, 10),
                    torch::eye(kTokens).expand({64, kTokens, kTokens})},
                   2);
    const at::Tensor loss =
        step.run(2e-3, {tokens.to(world.device()),
                        (digits.cumsum(1) % 10).to(world.device())});
    if (i % 100 == 0 && world.is_main()) {
      std::cout << "step " << i << ": loss " << loss.item<float>() << ", "
                << step.num_replays() << " replays" << std::endl;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_program(
      [&] { train(argc > 1 ? std::atoll(argv[1]) : 500); });
}
