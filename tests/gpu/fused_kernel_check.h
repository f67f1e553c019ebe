// Fused kernels against the ATen operations that they replace, computed on the
// CPU in double from the same rounded inputs.
#pragma once

#include <c10/core/Device.h>
#include <torch/types.h>

#include <array>
#include <functional>
#include <vector>

namespace lockstep::kernels {

using Tensors = std::vector<torch::Tensor>;
using Operation = std::function<Tensors(const Tensors&)>;

constexpr std::array kTypes = {torch::kFloat, torch::kHalf, torch::kBFloat16};

c10::Device gpu();

// The CUDA library is loaded first: torch asks for it only once.
void seed(uint64_t number);

double relative_error(const torch::Tensor& actual,
                      const torch::Tensor& expected);

// The relative error that rounding to this type leaves.
double rounding(torch::Dtype type);

// Results and gradients of an operation are near the reference within the
// rounding of each tensor's type, or a larger tolerance, twice the same bits,
// and the results in `type`, which only the kernel gives when another input is
// wider. Inputs may be undefined.
void expect_as_on_cpu(const Operation& operation, const Tensors& inputs,
                      torch::Dtype type, double tolerance = 2e-5);

}  // namespace lockstep::kernels
