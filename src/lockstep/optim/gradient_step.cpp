#include "lockstep/optim/gradient_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "lockstep/error.h"
#include "lockstep/optim/tensor_groups.h"

namespace lockstep::optim {
namespace {

using GradientLists = std::vector<std::vector<at::Tensor>>;

GradientLists gradient_lists(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  GradientLists lists;
  for (const auto& places : by_device_and_dtype(gradients)) {
    lists.push_back(pick(gradients, places));
  }
  return lists;
}

at::Tensor total_norm(const GradientLists& lists) {
  const auto device = lists[0][0].device();
  std::vector<at::Tensor> norms;
  for (const auto& gradients : lists) {
    for (const at::Tensor& norm : at::_foreach_norm(gradients, 2)) {
      norms.push_back(norm.to(device, /*non_blocking=*/true));
    }
  }
  return at::linalg_vector_norm(at::stack(norms), 2);
}

}  // namespace

// What is not finite stays so: the norm finds it.
void unscale_gradients(const std::vector<at::Tensor>& gradients,
                       const at::Tensor& inverse_scale) {
  if (gradients.empty()) return;
  const auto factor =
      inverse_scale.to(gradients[0].device(), /*non_blocking=*/true);
  if (gradients[0].scalar_type() == at::kBFloat16) {
    // CUDA's kernel lacks bfloat16, and a plain product would round the
    // factor to it.
    for (const at::Tensor& gradient : gradients) {
      gradient.copy_(gradient.to(at::kFloat).mul_(factor));
    }
  } else if (gradients[0].scalar_type() == at::kDouble) {
    // The kernel takes a float factor only, which would round a double one.
    at::_foreach_mul_(gradients, factor.to(at::kDouble));
  } else {
    auto ignored = at::zeros({}, factor.options().dtype(at::kFloat));
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, ignored,
                                                   factor.to(at::kFloat));
  }
}

// Python divides a number by a tensor as reciprocal times number, which rounds
// differently from a division.
void clip_gradients(const std::vector<at::Tensor>& gradients,
                    const at::Tensor& norm, double max_norm) {
  if (gradients.empty()) return;
  const auto factor = ((norm + 1e-6).reciprocal() * max_norm).clamp_max(1.0);
  at::_foreach_mul_(gradients,
                    factor.to(gradients[0].device(), /*non_blocking=*/true));
}

GradientReport report_norm(const at::Tensor& norm) {
  return {.norm = norm.to(at::kFloat),
          .found_inf = norm.isfinite().logical_not().to(at::kFloat)};
}

GradientReport prepare_gradients(const std::vector<at::Tensor>& parameters,
                                 const std::optional<at::Tensor>& inverse_scale,
                                 double max_norm) {
  if (!(max_norm >= 0)) {
    throw ConfigError(fmt::format(
        "the norm to clip gradients to is {}; it must be above 0, or 0 for no "
        "clipping",
        max_norm));
  }
  const at::NoGradGuard no_grad;
  const GradientLists lists = gradient_lists(parameters);
  if (lists.empty()) {
    auto options = at::TensorOptions().dtype(at::kFloat);
    if (!parameters.empty()) options = options.device(parameters[0].device());
    return {.norm = at::zeros({}, options),
            .found_inf = at::zeros({}, options)};
  }
  for (const auto& gradients : lists) {
    if (inverse_scale) unscale_gradients(gradients, *inverse_scale);
  }
  const at::Tensor norm = total_norm(lists);
  for (const auto& gradients : lists) {
    if (max_norm > 0) clip_gradients(gradients, norm, max_norm);
  }
  return report_norm(norm);
}

}  // namespace lockstep::optim
