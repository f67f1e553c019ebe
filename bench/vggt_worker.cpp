// Lockstep's side of the VGGT benchmark; python/vggt_peer.py is its peer.
//
//   vggt_worker cpu|cuda vggt_1b|tiny VIEWS SIZE BLOCK BATCH...
//
// A line of JSON for each batch: frames per second of a frozen VGGT with random
// weights, the median of three blocks of BLOCK forwards. On a GPU the trunk's
// weights are bfloat16 and the heads' float32, on the CPU all are float32.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/lockstep.h"
#include "lockstep/models/vggt/frozen.h"
#include "lockstep/nn/weights.h"
#include "lockstep/tensor/device.h"

namespace {

constexpr int kBlocks = 3;

struct Case {
  c10::Device device;
  std::string preset;
  int64_t views = 2;
  int64_t size = 518;
  int64_t block = 20;
};

// The peer's small one.
lockstep::vggt::VggtConfig tiny() {
  return {.image_size = 28,
          .width = 16,
          .num_heads = 2,
          .vit_depth = 4,
          .depth = 4,
          .camera_depth = 2,
          .camera_iterations = 3,
          .dpt_features = 8,
          .dpt_hidden = 6,
          .dpt_outs = {4, 8, 12, 16},
          .dpt_layers = {0, 1, 2, 3}};
}

std::shared_ptr<lockstep::vggt::Vggt> make_net(const Case& one) {
  const torch::NoGradGuard no_grad;
  auto net = std::make_shared<lockstep::vggt::Vggt>(
      one.preset == "tiny" ? tiny() : lockstep::vggt::vggt_preset(one.preset));
  const at::TensorOptions options(one.device);
  lockstep::nn::materialize(
      *net->aggregator(),
      options.dtype(one.device.is_cuda() ? at::kBFloat16 : at::kFloat));
  lockstep::nn::materialize(*net, options.dtype(at::kFloat));
  for (const auto& item : net->named_parameters()) {
    at::Tensor value = item.value();
    if (value.dim() > 1) {
      value.normal_(0, 0.02);
    } else {
      value.fill_(item.key().ends_with("bias") ? 0 : 1);
    }
  }
  return net;
}

double seconds_of(lockstep::vggt::FrozenVggt& net, const at::Tensor& images,
                  int64_t count) {
  const int64_t begin = lockstep::base::monotonic_ns();
  at::Tensor points;
  for (int64_t i = 0; i < count; ++i) points = net.forward(images).points;
  // Reading a number waits for all before it.
  if (!std::isfinite(points.flatten()[0].item<float>())) {
    throw lockstep::InternalError("points are not finite");
  }
  return lockstep::base::seconds_between(begin, lockstep::base::monotonic_ns());
}

void measure(lockstep::vggt::FrozenVggt& net, const Case& one, int64_t batch) {
  const at::Tensor images = torch::rand(
      {batch, one.views, 3, one.size, one.size}, at::TensorOptions(one.device));
  seconds_of(net, images, std::max<int64_t>(one.block, 3));
  std::vector<double> rates;
  for (int i = 0; i < kBlocks; ++i) {
    rates.push_back(static_cast<double>(batch * one.views * one.block) /
                    seconds_of(net, images, one.block));
  }
  std::ranges::sort(rates);
  fmt::print(
      "{{\"batch\": {}, \"rate\": {:.3f}, \"recorded\": {}, \"peak_bytes\": "
      "{}}}\n",
      batch, rates[kBlocks / 2], net.graphs().num_recorded(),
      lockstep::tensor::device_memory(one.device).peak_bytes);
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_program([&] {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() < 6) {
      throw lockstep::ConfigError(
          "usage: vggt_worker cpu|cuda vggt_1b|tiny VIEWS SIZE BLOCK BATCH...");
    }
    const Case one{.device = lockstep::tensor::take_device(
                       words[0] == "cuda" ? lockstep::DeviceChoice::kCuda
                                          : lockstep::DeviceChoice::kCpu,
                       0, {}),
                   .preset = words[1],
                   .views = std::stoll(words[2]),
                   .size = std::stoll(words[3]),
                   .block = std::stoll(words[4])};
    lockstep::vggt::FrozenVggt net(make_net(one),
                                   {.points = true, .pose = true});
    for (size_t i = 5; i < words.size(); ++i) {
      measure(net, one, std::stoll(words[i]));
    }
  });
}
