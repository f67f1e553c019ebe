// The update of a model in two passes, against the steps that it replaces.
#include "lockstep/optim/fused_update.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/kernels/linear.h"
#include "lockstep/kernels/working_weights.h"
#include "lockstep/tensor/device.h"

namespace lockstep::optim {
namespace {

using torch::Tensor;
using Tensors = std::vector<Tensor>;

c10::Device gpu() { return tensor::take_device(DeviceChoice::kCuda, 0, {}); }

struct ModelConfig {
  std::string kind = "adamw";
  double max_norm = 0;
  int64_t num_small = 400;  // More than one table holds.
};

// Parameters of many sizes in two groups, with two averages.
class Model {
 public:
  explicit Model(const ModelConfig& config)
      : config_(config), parameters_(make(config.num_small)) {
    const auto middle = parameters_.begin() + 5;
    optimizer_ = make_optimizer(
        config.kind,
        {{.name = "a", .parameters = {parameters_.begin(), middle}},
         {.name = "b",
          .parameters = {middle, parameters_.end()},
          .lr_scale = 0.3,
          .weight_decay = 0.0}},
        {.lr = 1e-3, .weight_decay = 0.05, .momentum = 0.9, .nesterov = true});
    averages_.emplace_back(parameters_,
                           EmaConfig{.decay = 0.99, .warmup = true});
    averages_.emplace_back(parameters_, EmaConfig{.decay = 0.3});
    fused_ =
        std::make_unique<FusedUpdate>(*optimizer_, averages_, config.max_norm);
  }

  void set_gradients(uint64_t seed, double scale = 1) {
    auto generator = at::detail::createCPUGenerator(seed);
    // As in a bucket: neighbours in memory, whatever their alignment.
    int64_t total = 0;
    for (const Tensor& parameter : parameters_) total += parameter.numel();
    const Tensor bucket =
        (scale * torch::randn({total}, generator)).to(parameters_[0].device());
    int64_t begin = 0;
    for (const Tensor& parameter : parameters_) {
      parameter.mutable_grad() =
          bucket.slice(0, begin, begin + parameter.numel())
              .view(parameter.sizes());
      begin += parameter.numel();
    }
  }

  GradientReport step_by_parts(double lr,
                               const std::optional<Tensor>& factor = {}) {
    const GradientReport report =
        prepare_gradients(parameters_, factor, config_.max_norm);
    optimizer_->set_lr(lr);
    optimizer_->step_and_clear(report.found_inf);
    for (Ema& average : averages_) average.update();
    return report;
  }

  GradientReport step_fused(double lr,
                            const std::optional<Tensor>& factor = {}) {
    EXPECT_TRUE(fused_->fits());
    fused_->begin_step(lr);
    return fused_->run(factor);
  }

  Tensors state() const {
    Tensors all;
    for (const Tensor& parameter : parameters_) {
      all.push_back(parameter.detach());
    }
    for (const auto& named : optimizer_->state().parameters) {
      for (const auto& [name, value] : named) all.push_back(value);
    }
    for (const Ema& average : averages_) {
      all.insert(all.end(), average.averages().begin(),
                 average.averages().end());
    }
    return all;
  }

  Tensors& parameters() { return parameters_; }
  const FusedUpdate& fused() const { return *fused_; }

 private:
  static Tensors make(int64_t num_small) {
    auto generator = at::detail::createCPUGenerator(7);
    Tensors made;
    const auto add = [&](at::IntArrayRef sizes) {
      made.push_back(
          (0.1 * torch::randn(sizes, generator)).to(gpu()).requires_grad_());
    };
    for (const int64_t size : {1, 3, 16384, 40003, 5}) add({size});
    add({64, 33});
    for (int64_t i = 0; i < num_small; ++i) add({1 + i % 7});
    return made;
  }

  ModelConfig config_;
  Tensors parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Ema> averages_;
  std::unique_ptr<FusedUpdate> fused_;
};

double largest_difference(const Model& left, const Model& right) {
  const Tensors a = left.state();
  const Tensors b = right.state();
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, (a[i] - b[i]).abs().max().item<double>());
  }
  return largest;
}

TEST(GpuFusedUpdate, DoesWhatTheStepsItReplacesDo) {
  for (const std::string kind : {"adamw", "adam", "sgd"}) {
    SCOPED_TRACE(kind);
    Model fused({.kind = kind});
    Model parts({.kind = kind});
    EXPECT_FALSE(fused.fused().fits());  // There is no state yet.
    for (uint64_t step = 0; step < 20; ++step) {
      const double lr = 1e-3 * static_cast<double>(step + 1);
      fused.set_gradients(step);
      parts.set_gradients(step);
      const GradientReport expected = parts.step_by_parts(lr);
      if (step == 0) {
        fused.step_by_parts(lr);
        continue;
      }
      const GradientReport report = fused.step_fused(lr);
      EXPECT_NEAR(report.norm.item<float>(), expected.norm.item<float>(), 1e-3);
      EXPECT_FALSE(fused.parameters()[0].grad().defined());
    }
    EXPECT_LE(largest_difference(fused, parts), kind == "adamw" ? 0 : 1e-6);
  }
}

TEST(GpuFusedUpdate, ClipsAndScales) {
  Model fused({.max_norm = 1});
  Model parts({.max_norm = 1});
  const Tensor factor = torch::full({}, 0.25, gpu());
  for (uint64_t step = 0; step < 10; ++step) {
    const double scale = step % 2 == 0 ? 100 : 1e-4;  // Clipped and not.
    fused.set_gradients(step, scale);
    parts.set_gradients(step, scale);
    const auto expected = parts.step_by_parts(1e-3, factor);
    const auto report = step == 0 ? fused.step_by_parts(1e-3, factor)
                                  : fused.step_fused(1e-3, factor);
    EXPECT_NEAR(report.norm.item<float>() / expected.norm.item<float>(), 1,
                1e-5);
  }
  EXPECT_LT(largest_difference(fused, parts), 1e-6);
}

TEST(GpuFusedUpdate, ASkippedStepOnlyMovesAverages) {
  Model fused({});
  Model parts({});
  for (uint64_t step = 0; step < 6; ++step) {
    for (Model* model : {&fused, &parts}) {
      model->set_gradients(step);
      if (step == 3) {
        model->parameters()[3].grad()[77] =
            std::numeric_limits<float>::infinity();
      }
    }
    parts.step_by_parts(1e-3);
    const auto report =
        step == 0 ? fused.step_by_parts(1e-3) : fused.step_fused(1e-3);
    EXPECT_EQ(report.found_inf.item<float>(), step == 3 ? 1 : 0);
  }
  EXPECT_EQ(largest_difference(fused, parts), 0);
}

TEST(GpuFusedUpdate, AParameterWithoutAGradientStays) {
  Model fused({});
  Model parts({});
  for (uint64_t step = 0; step < 4; ++step) {
    for (Model* model : {&fused, &parts}) {
      model->set_gradients(step);
      if (step > 0) model->parameters()[2].mutable_grad().reset();
    }
    parts.step_by_parts(1e-3);
    if (step == 0) {
      fused.step_by_parts(1e-3);
    } else {
      fused.step_fused(1e-3);
    }
  }
  EXPECT_EQ(largest_difference(fused, parts), 0);
}

TEST(GpuWorkingWeights, FollowTheOptimizerAndChangesFromOutside) {
  for (const auto dtype : {torch::kBFloat16, torch::kHalf}) {
    auto generator = at::detail::createCPUGenerator(3);
    const Tensor weight =
        torch::randn({48, 33}, generator).to(gpu()).requires_grad_();
    const Tensor bias =
        torch::randn({48}, generator).to(gpu()).requires_grad_();
    const auto optimizer = make_optimizer(
        "adamw", {{.parameters = {weight, bias}}}, OptimizerConfig{.lr = 0.1});
    std::vector<Ema> averages;
    averages.emplace_back(Tensors{weight, bias}, EmaConfig{.decay = 0.5});
    kernels::WorkingWeights working({weight, bias}, dtype);
    FusedUpdate fused(*optimizer, averages, 0, &working);
    const auto is_current = [&] {
      return working.find(weight).equal(weight.detach().to(dtype)) &&
             working.find(bias).equal(bias.detach().to(dtype));
    };
    working.refresh();
    EXPECT_TRUE(is_current());
    for (int step = 0; step < 3; ++step) {
      weight.mutable_grad() = torch::ones_like(weight);
      bias.mutable_grad() = torch::ones_like(bias);
      if (step == 0) {
        optimizer->step_and_clear();
        working.mark_changed();
        working.refresh();
      } else {
        fused.begin_step(0.1);
        fused.run({});
      }
      EXPECT_TRUE(is_current()) << step;
    }
    {
      const EmaScope scope(averages[0]);
      working.refresh();
      EXPECT_TRUE(is_current());
    }
    EXPECT_FALSE(is_current());
    working.refresh();
    EXPECT_TRUE(is_current());
  }
}

TEST(GpuWorkingWeights, ALinearLayerMultipliesByThem) {
  auto generator = at::detail::createCPUGenerator(4);
  const auto leaf = [&](at::IntArrayRef sizes) {
    return torch::randn(sizes, generator).to(gpu()).requires_grad_();
  };
  const Tensor weight = leaf({40, 24});
  const Tensor bias = leaf({40});
  const Tensor x = leaf({5, 7, 24});
  kernels::WorkingWeights working({weight, bias}, torch::kBFloat16);
  working.refresh();
  const auto wide = [](const Tensor& tensor) {
    return tensor.detach().to(torch::kBFloat16).to(torch::kDouble);
  };
  const Tensor d_out =
      torch::randn({5, 7, 40}, generator).to(gpu(), torch::kBFloat16);
  {
    const kernels::WorkingWeights::Scope scope(&working);
    const Tensor out = kernels::linear(x, weight, bias);
    EXPECT_EQ(out.scalar_type(), torch::kBFloat16);
    out.backward(d_out);
    const Tensor expected = torch::linear(wide(x), wide(weight), wide(bias));
    EXPECT_TRUE(torch::allclose(out.to(torch::kDouble), expected, 1e-2, 1e-2));
  }
  const Tensor rows = wide(d_out).view({-1, 40});
  // Sums of exact products in float32: not rounded to bfloat16.
  EXPECT_TRUE(torch::allclose(weight.grad().to(torch::kDouble),
                              rows.t().mm(wide(x).view({-1, 24})), 1e-5, 1e-5));
  EXPECT_TRUE(
      torch::allclose(bias.grad().to(torch::kDouble), rows.sum(0), 1e-5, 1e-5));
  EXPECT_EQ(x.grad().scalar_type(), torch::kFloat);
  EXPECT_TRUE(torch::allclose(x.grad().to(torch::kDouble).view({-1, 24}),
                              rows.mm(wide(weight)), 2e-2, 2e-2));
  EXPECT_EQ(kernels::WorkingWeights::current(), nullptr);
}

}  // namespace
}  // namespace lockstep::optim
