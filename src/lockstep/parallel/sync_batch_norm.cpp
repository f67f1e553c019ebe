#include "lockstep/sync_batch_norm.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/batchnorm.h>

#include <array>
#include <vector>

#include "lockstep/error.h"

namespace lockstep {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// An empty batch counts as this much: 0 would be divided by 0 where statistics
// are merged, and any other count hides it.
constexpr double kAlmostNothing = 1e-30;

int64_t values_per_channel(const Tensor& x) { return x.numel() / x.size(1); }

[[noreturn]] void refuse_count(double count) {
  throw ConfigError(fmt::format(
      "batch normalisation needs more than one value per channel in training "
      "and got {:.0f}: raise the batch size",
      count));
}

// What one normalisation needs beside its input. Rides in the saved data of the
// autograd node.
struct Norm final : torch::CustomClassHolder {
  Norm(const World& of, const BatchNormConfig& with)
      : world(of), config(with) {}
  World world;
  BatchNormConfig config;
  Tensor running_mean;
  Tensor running_var;
};

// [C] as [1, C, 1, ...].
Tensor as_channels(const Tensor& values, const Tensor& like) {
  std::vector<int64_t> shape(static_cast<size_t>(like.dim()), 1);
  shape[1] = values.numel();
  return values.view(shape);
}

// Mean and inverse deviation per channel of all ranks. Kernels of CUDA know
// both; those of the CPU know means and variances.
struct Moments {
  Tensor mean;
  Tensor inverse;
};

// Per rank one row [mean, spread, count]; the spread is the inverse deviation
// on CUDA, the variance on the CPU.
Tensor local_row(const Tensor& x, const Norm& norm) {
  const auto options = norm.running_mean.options();
  if (x.numel() == 0) {
    Tensor row = at::ones({2 * x.size(1) + 1}, options);
    row.slice(0, 0, x.size(1)).zero_();
    row[-1].fill_(kAlmostNothing);
    return row;
  }
  const auto [mean, spread] =
      x.is_cuda() ? at::batch_norm_stats(x, norm.config.eps)
                  : at::batch_norm_update_stats(
                        x.to(options.dtype()), /*running_mean=*/{},
                        /*running_var=*/{}, norm.config.momentum);
  const Tensor count =
      at::full({1}, static_cast<double>(values_per_channel(x)), options);
  return at::cat({mean.to(options.dtype()), spread.to(options.dtype()), count});
}

// rows [ranks, 2 * C + 1]. Updates the running statistics.
Moments merge_rows_on_cpu(const Tensor& rows, const Norm& norm) {
  const int64_t channels = norm.running_mean.numel();
  const Tensor mean = rows.narrow(1, 0, channels);
  const Tensor variance = rows.narrow(1, channels, channels);
  const Tensor counts = rows.narrow(1, 2 * channels, 1);
  const Tensor total = counts.sum();
  const Tensor fraction = counts / total;
  const Tensor joint = (mean * fraction).sum(0);
  const Tensor spread =
      ((variance + (mean - joint).square()) * fraction).sum(0);
  const double momentum = norm.config.momentum;
  Tensor running_mean = norm.running_mean;
  Tensor running_var = norm.running_var;
  running_mean.mul_(1 - momentum).add_(joint, momentum);
  running_var.mul_(1 - momentum).add_(spread * (total / (total - 1)), momentum);
  return {.mean = joint, .inverse = (spread + norm.config.eps).rsqrt()};
}

Moments merge_rows(const Tensor& x, const Tensor& rows, const Norm& norm) {
  if (!x.is_cuda()) return merge_rows_on_cpu(rows, norm);
  const int64_t channels = norm.running_mean.numel();
  const auto [mean, inverse] = at::batch_norm_gather_stats_with_counts(
      x, rows.narrow(1, 0, channels).contiguous(),
      rows.narrow(1, channels, channels).contiguous(), norm.running_mean,
      norm.running_var, norm.config.momentum, norm.config.eps,
      rows.select(1, 2 * channels).contiguous());
  return {.mean = mean, .inverse = inverse};
}

// The sum is read from the device only where it may be too small: then every
// rank has less than two values, and all of them look.
void check_total(const Tensor& x, const Tensor& counts) {
  if (values_per_channel(x) > 1) return;
  const double total = counts.sum().item<double>();
  if (total < 1.5) refuse_count(total);
}

// The kernels want rows of channels, or channels last.
Tensor in_kernel_format(const Tensor& x) {
  return x.contiguous(x.suggest_memory_format());
}

Tensor normalise(const Tensor& x, const Moments& moments,
                 const std::array<Tensor, 2>& affine, double eps) {
  if (x.numel() == 0) return at::empty_like(x);
  if (x.is_cuda()) {
    return at::batch_norm_elemt(x, affine[0], affine[1], moments.mean,
                                moments.inverse, eps);
  }
  // The kernel adds eps again.
  const Tensor variance = moments.inverse.pow(-2) - eps;
  return std::get<0>(at::native_batch_norm(x, affine[0], affine[1],
                                           moments.mean, variance,
                                           /*training=*/false, 0, eps));
}

// Sums over this rank's batch, per channel: of dy, and of dy (x - mean).
struct Sums {
  Tensor dy;
  Tensor dy_xmu;
};

Sums local_sums(const Tensor& dy, const Tensor& x, const Moments& moments) {
  if (x.numel() == 0) {
    return {.dy = at::zeros_like(moments.mean),
            .dy_xmu = at::zeros_like(moments.mean)};
  }
  if (x.is_cuda()) {
    const auto reduced = at::batch_norm_backward_reduce(
        dy, x, moments.mean, moments.inverse, /*weight=*/{},
        /*input_g=*/true, /*weight_g=*/false, /*bias_g=*/false);
    return {.dy = std::get<0>(reduced), .dy_xmu = std::get<1>(reduced)};
  }
  // With eps 0 and variance 1 the kernel's gradient of the weight is the sum.
  const auto reduced = at::native_batch_norm_backward(
      dy, x, /*weight=*/{}, moments.mean, at::ones_like(moments.mean),
      /*save_mean=*/{}, /*save_invstd=*/{}, /*train=*/false, /*eps=*/0,
      {false, true, true});
  return {.dy = std::get<2>(reduced), .dy_xmu = std::get<1>(reduced)};
}

struct InputGradient {
  const Tensor& dy;
  const Tensor& x;
  const Tensor& weight;
  const Moments& moments;
  const Sums& sums;      // over all ranks
  const Tensor& counts;  // per rank
};

Tensor input_gradient(const InputGradient& of) {
  if (of.x.numel() == 0) return at::empty_like(of.x);
  if (of.x.is_cuda()) {
    return at::batch_norm_backward_elemt(
        of.dy, of.x, of.moments.mean, of.moments.inverse, of.weight, of.sums.dy,
        of.sums.dy_xmu, of.counts.to(at::kInt));
  }
  // w / s * (dy - mean(dy) - (x - mu) / s^2 * mean(dy (x - mu)))
  const Tensor total = of.counts.sum();
  const Tensor scale = of.weight * of.moments.inverse;
  const Tensor slope = of.moments.inverse.square() * of.sums.dy_xmu / total;
  const auto spread = [&](const Tensor& values) {
    return as_channels(values, of.x);
  };
  Tensor dx = of.x - spread(of.moments.mean);
  dx.mul_(spread(-scale * slope));
  dx.addcmul_(of.dy, spread(scale));
  return dx.sub_(spread(scale * of.sums.dy / total)).to(of.x.scalar_type());
}

struct SyncNormalise : torch::autograd::Function<SyncNormalise> {
  static Tensor forward(AutogradContext* context, const Tensor& given,
                        const Tensor& weight, const Tensor& bias,
                        const c10::intrusive_ptr<Norm>& norm) {
    const Tensor x = in_kernel_format(given);
    const Tensor rows = at::stack(norm->world.all_gather(local_row(x, *norm)));
    const Tensor counts = rows.select(1, rows.size(1) - 1);
    check_total(x, counts);
    const Moments moments = merge_rows(x, rows, *norm);
    context->save_for_backward(
        {x, weight, moments.mean, moments.inverse, counts.contiguous()});
    context->saved_data["norm"] = c10::IValue::make_capsule(norm);
    return normalise(x, moments, {weight, bias}, norm->config.eps);
  }

  static variable_list backward(AutogradContext* context,
                                variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor& x = saved[0];
    const Moments moments{.mean = saved[2], .inverse = saved[3]};
    const Tensor dy = gradients[0].contiguous(x.suggest_memory_format());
    const Sums own = local_sums(dy, x, moments);
    Tensor dx;
    if (context->needs_input_grad(0)) {
      const auto norm = context->saved_data["norm"].toCapsule();
      Tensor both = at::cat({own.dy, own.dy_xmu});
      static_cast<const Norm&>(*norm).world.all_reduce(both);
      const auto halves = both.chunk(2);
      dx = input_gradient({.dy = dy,
                           .x = x,
                           .weight = saved[1],
                           .moments = moments,
                           .sums = {.dy = halves[0], .dy_xmu = halves[1]},
                           .counts = saved[4]});
    }
    return {dx, own.dy_xmu * moments.inverse, own.dy, Tensor()};
  }
};

bool is_plain(const torch::nn::Module& module) {
  return module.as<torch::nn::BatchNorm1dImpl>() != nullptr ||
         module.as<torch::nn::BatchNorm2dImpl>() != nullptr ||
         module.as<torch::nn::BatchNorm3dImpl>() != nullptr;
}

}  // namespace

SyncBatchNormImpl::SyncBatchNormImpl(int64_t num_features,
                                     const BatchNormConfig& config)
    : num_features_(num_features), config_(config) {
  SyncBatchNormImpl::reset();
}

void SyncBatchNormImpl::reset() {
  weight = register_parameter("weight", at::ones({num_features_}));
  bias = register_parameter("bias", at::zeros({num_features_}));
  running_mean = register_buffer("running_mean", at::zeros({num_features_}));
  running_var = register_buffer("running_var", at::ones({num_features_}));
  num_batches_tracked = register_buffer("num_batches_tracked",
                                        at::zeros({}, at::dtype(at::kLong)));
}

void SyncBatchNormImpl::check_shape(const Tensor& x) const {
  if (x.dim() >= 2 && x.dim() <= 5 && x.size(1) == num_features_) return;
  throw ConfigError(fmt::format(
      "batch normalisation of {} channels got an input of {} dimensions{}",
      num_features_, x.dim(),
      x.dim() < 2 ? "" : fmt::format(" and {} channels", x.size(1))));
}

Tensor SyncBatchNormImpl::forward(const Tensor& x) {
  check_shape(x);
  if (is_training()) num_batches_tracked.add_(1);
  if (is_training() && world_) {
    auto norm = c10::make_intrusive<Norm>(*world_, config_);
    norm->running_mean = running_mean;
    norm->running_var = running_var;
    return SyncNormalise::apply(x, weight, bias, norm);
  }
  if (is_training() && values_per_channel(x) < 2) {
    refuse_count(static_cast<double>(values_per_channel(x)));
  }
  return at::batch_norm(x, weight, bias, running_mean, running_var,
                        is_training(), config_.momentum, config_.eps,
                        at::globalContext().userEnabledCuDNN());
}

void SyncBatchNormImpl::connect(const World& world) { world_.emplace(world); }

void connect_sync_batch_norms(torch::nn::Module& root, const World& world) {
  std::vector<SyncBatchNormImpl*> found;
  const auto visit = [&found](const std::string& name,
                              torch::nn::Module& module) {
    if (is_plain(module)) {
      throw ConfigError(
          fmt::format("'{}' is a plain torch::nn::BatchNorm, which cannot be "
                      "replaced in C++: make it a lockstep::SyncBatchNorm",
                      name));
    }
    if (auto* norm = module.as<SyncBatchNormImpl>()) found.push_back(norm);
  };
  visit("", root);
  for (const auto& item : root.named_modules("", /*include_self=*/false)) {
    visit(item.key(), *item.value());
  }
  if (world.size() == 1) return;
  for (SyncBatchNormImpl* norm : found) norm->connect(world);
}

}  // namespace lockstep
