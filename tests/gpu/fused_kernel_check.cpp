#include "fused_kernel_check.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/tensor/device.h"

namespace lockstep::kernels {
namespace {

using torch::Tensor;

struct Run {
  Tensors results = {};
  Tensors gradients =
      {};  // With respect to the inputs; undefined for undefined ones.
};

// Results and gradients for weights of the results that depend on their number
// and place alone.
Run run(const Operation& operation, const Tensors& inputs) {
  Tensors leaves;
  for (const Tensor& input : inputs) {
    leaves.push_back(input.defined() ? input.detach().clone().requires_grad_()
                                     : Tensor());
  }
  Run done{.results = operation(leaves)};
  Tensor loss;
  for (const Tensor& result : done.results) {
    const Tensor wave =
        torch::arange(result.numel(), torch::kDouble)
            .mul(0.37 + static_cast<double>(result.dim()))
            .sin()
            .view(result.sizes())
            .to(torch::kBFloat16)  // Exact in every type of the tests.
            .to(result.device(), result.scalar_type());
    const Tensor part = (result * wave).sum(torch::kDouble);
    loss = loss.defined() ? loss + part : part;
  }
  loss.backward();
  for (const Tensor& leaf : leaves) {
    done.gradients.push_back(leaf.defined() ? leaf.grad() : Tensor());
  }
  return done;
}

Tensors converted(const Tensors& tensors, const torch::TensorOptions& options) {
  Tensors out;
  for (const Tensor& tensor : tensors) {
    out.push_back(tensor.defined() ? tensor.to(options) : Tensor());
  }
  return out;
}

void expect_equal(const Tensors& actual, const Tensors& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].defined(), expected[i].defined()) << i;
    if (actual[i].defined()) {
      EXPECT_TRUE(actual[i].equal(expected[i])) << i;
    }
  }
}

}  // namespace

c10::Device gpu() { return tensor::take_device(DeviceChoice::kCuda, 0, {}); }

void seed(uint64_t number) {
  gpu();
  torch::manual_seed(number);
}

double relative_error(const Tensor& actual, const Tensor& expected) {
  const Tensor wanted = expected.to(torch::kDouble);
  const Tensor got = actual.to(torch::kCPU, torch::kDouble);
  return ((got - wanted).norm() / (wanted.norm() + 1e-30)).item<double>();
}

double rounding(torch::Dtype type) {
  if (type == torch::kBFloat16) return 5e-3;
  return type == torch::kHalf ? 6e-4 : 3e-6;
}

void expect_as_on_cpu(const Operation& operation, const Tensors& inputs,
                      torch::Dtype type, double tolerance) {
  const Run on_gpu = run(operation, converted(inputs, gpu()));
  const Run again = run(operation, converted(inputs, gpu()));
  const Run reference = run(operation, converted(inputs, torch::kDouble));
  EXPECT_EQ(on_gpu.results[0].scalar_type(), type);
  expect_equal(on_gpu.results, again.results);
  expect_equal(on_gpu.gradients, again.gradients);
  const auto expect_near = [&](const Tensors& actual, const Tensors& expected,
                               const char* what) {
    for (size_t i = 0; i < expected.size(); ++i) {
      if (!expected[i].defined()) continue;
      EXPECT_LT(relative_error(actual[i], expected[i]),
                std::max(rounding(actual[i].scalar_type()), tolerance))
          << what << " " << i;
    }
  };
  expect_near(on_gpu.results, reference.results, "result");
  expect_near(on_gpu.gradients, reference.gradients, "gradient");
}

}  // namespace lockstep::kernels
