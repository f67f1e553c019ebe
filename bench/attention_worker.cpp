// Attention over few tokens: Lockstep's kernel against the fastest of
// PyTorch's.
//
//   attention_worker ROUNDS
//
// Microseconds of forward, and of forward and backward, by turns; one JSON line
// per shape, bf16. Queries, keys and values are parts of one projection, whose
// gradient both leave packed.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>

#include "lockstep/base/clock.h"
#include "lockstep/error.h"
#include "lockstep/kernels/short_attention.h"
#include "lockstep/program.h"
#include "lockstep/tensor/device.h"

namespace {

using lockstep::kernels::LinearResult;
using torch::Tensor;

constexpr int kCalls = 40;

struct Shape {
  int64_t batch, count, heads;
};
constexpr std::array kShapes = {Shape{128, 260, 6}, Shape{128, 256, 12},
                                Shape{128, 288, 12}, Shape{16, 260, 6},
                                Shape{16, 288, 12}};

Tensor by_pytorch(const Tensor& qkv) {
  const auto parts = qkv.unbind(2);
  const auto heads = [&](size_t i) { return parts[i].transpose(1, 2); };
  return torch::scaled_dot_product_attention(heads(0), heads(1), heads(2))
      .transpose(1, 2);
}

Tensor by_lockstep(const Tensor& qkv) {
  const LinearResult packed{.out = qkv};
  if (!lockstep::kernels::has_short_attention(packed)) {
    throw lockstep::ConfigError("this GPU has no such kernel");
  }
  return lockstep::kernels::short_attention(packed);
}

double microseconds(c10::Device device, const std::function<void()>& call) {
  call();
  lockstep::tensor::synchronize(device);
  const int64_t begin = lockstep::base::monotonic_ns();
  for (int i = 0; i < kCalls; ++i) call();
  lockstep::tensor::synchronize(device);
  return 1e6 / kCalls *
         lockstep::base::seconds_between(begin, lockstep::base::monotonic_ns());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Times {
  std::vector<double> forward = {};
  std::vector<double> both = {};
};

void measure(const Shape& shape, int rounds, c10::Device device) {
  const Tensor qkv =
      torch::randn({shape.batch, shape.count, 3, shape.heads, 64},
                   torch::dtype(torch::kBFloat16).device(device))
          .requires_grad_();
  const Tensor gradient = torch::randn_like(by_pytorch(qkv.detach()));
  const auto add = [&](Times& times, Tensor (*attend)(const Tensor&)) {
    times.forward.push_back(microseconds(device, [&] {
      const torch::NoGradGuard no_grad;
      attend(qkv);
    }));
    times.both.push_back(microseconds(device, [&] {
      torch::autograd::grad({attend(qkv)}, {qkv}, {gradient});
    }));
  };
  Times ours;
  Times theirs;
  for (int round = 0; round < rounds; ++round) {
    add(theirs, by_pytorch);
    add(ours, by_lockstep);
  }
  fmt::print(
      "{{\"shape\": \"{} x {} x {}\", \"forward_us\": {:.1f}, "
      "\"pytorch_forward_us\": {:.1f}, \"both_us\": {:.1f}, "
      "\"pytorch_both_us\": {:.1f}}}\n",
      shape.batch, shape.count, shape.heads, median(ours.forward),
      median(theirs.forward), median(ours.both), median(theirs.both));
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_program([&] {
    if (argc != 2)
      throw lockstep::ConfigError("usage: attention_worker ROUNDS");
    const c10::Device device =
        lockstep::tensor::take_device(lockstep::DeviceChoice::kCuda, 0, {});
    for (const Shape& shape : kShapes) {
      measure(shape, std::stoi(argv[1]), device);
    }
  });
}
