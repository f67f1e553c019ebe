// Optimizers, loss scale and averages on CUDA: what the unit tests promise on
// the CPU, and that no step waits for the device.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/clock.h"
#include "lockstep/ema.h"
#include "lockstep/optim/grad_scaler.h"
#include "lockstep/optim/gradient_step.h"
#include "lockstep/optimizer.h"
#include "lockstep/tensor/autocast.h"
#include "lockstep/tensor/device.h"

namespace lockstep {
namespace {

using torch::Tensor;

constexpr std::array kKinds = {"adamw", "adam", "sgd"};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

c10::Device gpu() { return tensor::take_device(DeviceChoice::kCuda, 0, {}); }

// One training with loss scale, clipping and average on one device.
struct DeviceTraining {
  std::vector<Tensor> parameters;
  std::unique_ptr<Optimizer> optimizer;
  optim::GradScaler scaler;
  Ema ema;

  DeviceTraining(const std::string& kind, c10::Device device,
                 torch::Dtype dtype)
      : parameters(make_parameters(device, dtype)),
        optimizer(make_optimizer(
            kind,
            {{.name = "a", .parameters = {parameters[0], parameters[1]}},
             {.name = "b",
              .parameters = {parameters[2]},
              .lr_scale = 0.3,
              .weight_decay = 0.0}},
            {.lr = 1e-3, .weight_decay = 0.05, .momentum = 0.9})),
        scaler({.init_scale = 1024, .growth_interval = 8}, device),
        ema(parameters, {.decay = 0.9}) {}

  static std::vector<Tensor> make_parameters(c10::Device device,
                                             torch::Dtype dtype) {
    std::vector<Tensor> made;
    for (const Tensor& value : noise(1000)) {
      made.push_back((0.1 * value).to(device, dtype).requires_grad_());
    }
    return made;
  }

  static std::vector<Tensor> noise(uint64_t seed) {
    auto generator = at::detail::createCPUGenerator(seed);
    return {torch::randn({64, 33}, generator), torch::randn({129}, generator),
            torch::randn({20000}, generator)};
  }

  optim::GradientReport update(const std::vector<Tensor>& gradients) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      parameters[i].mutable_grad() =
          gradients[i].to(parameters[i].options()) * scaler.scale_tensor();
    }
    const auto report =
        optim::prepare_gradients(parameters, scaler.inverse_scale(), 5);
    optimizer->step_and_clear(report.found_inf);
    scaler.update(report.found_inf);
    ema.update();
    return report;
  }

  std::vector<Tensor> tensors() const {
    std::vector<Tensor> all = parameters;
    for (const auto& named : optimizer->state().parameters) {
      for (const auto& [name, value] : named) all.push_back(value);
    }
    return all;
  }
};

std::vector<Tensor> with_inf(std::vector<Tensor> gradients) {
  gradients[1][7] = kInfinity;
  return gradients;
}

TEST(GpuOptimizer, StaysNearTheCpu) {
  for (const std::string kind : kKinds) {
    SCOPED_TRACE(kind);
    DeviceTraining cuda(kind, gpu(), torch::kFloat);
    DeviceTraining cpu(kind, c10::Device("cpu"), torch::kFloat);
    for (uint64_t step = 0; step < 50; ++step) {
      auto gradients = DeviceTraining::noise(step);
      if (step == 4 || step == 30) gradients = with_inf(gradients);
      cuda.update(gradients);
      cpu.update(gradients);
    }
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_LT((cuda.parameters[i].cpu() - cpu.parameters[i])
                    .abs()
                    .max()
                    .item<float>(),
                1e-6);
      EXPECT_LT((cuda.ema.averages()[i].cpu() - cpu.ema.averages()[i])
                    .abs()
                    .max()
                    .item<float>(),
                1e-6);
    }
    EXPECT_EQ(cuda.scaler.scale_tensor().item<float>(),
              cpu.scaler.scale_tensor().item<float>());
  }
}

TEST(GpuOptimizer, BFloat16IsTheRoundedResultOfTheCpu) {
  for (const std::string kind : kKinds) {
    SCOPED_TRACE(kind);
    DeviceTraining cuda(kind, gpu(), torch::kBFloat16);
    DeviceTraining cpu(kind, c10::Device("cpu"), torch::kBFloat16);
    cuda.update(DeviceTraining::noise(1));
    cpu.update(DeviceTraining::noise(1));
    for (size_t i = 0; i < 3; ++i) {
      const auto expected = cpu.parameters[i].detach().to(torch::kFloat);
      const auto got = cuda.parameters[i].detach().cpu().to(torch::kFloat);
      EXPECT_TRUE(torch::allclose(got, expected, /*rtol=*/8e-3, /*atol=*/1e-5));
    }
  }
}

TEST(GpuOptimizer, FoundInfLeavesEverythingAlone) {
  for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
    for (const std::string kind : kKinds) {
      SCOPED_TRACE(kind + " " + c10::toString(dtype));
      DeviceTraining training(kind, gpu(), dtype);
      for (uint64_t step = 0; step < 3; ++step) {
        training.update(DeviceTraining::noise(step));
      }
      std::vector<Tensor> before;
      for (const Tensor& t : training.tensors()) {
        before.push_back(t.detach().clone());
      }
      ASSERT_EQ(before.size(), kind == "sgd" ? 6u : 12u);
      const auto report = training.update(with_inf(DeviceTraining::noise(9)));
      EXPECT_EQ(report.found_inf.item<float>(), 1);
      const auto after = training.tensors();
      for (size_t i = 0; i < before.size(); ++i) {
        EXPECT_TRUE(torch::equal(before[i], after[i])) << i;
      }
      EXPECT_EQ(
          training.update(DeviceTraining::noise(10)).found_inf.item<float>(),
          0);
    }
  }
}

TEST(GpuGradientStep, UnscalesEveryTypeInItsOwnPrecision) {
  const auto inverse = torch::tensor(1.0f / 3).to(gpu());
  for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
    SCOPED_TRACE(c10::toString(dtype));
    auto p = torch::zeros({9}, torch::dtype(dtype).device(gpu()));
    p.requires_grad_();
    p.mutable_grad() = torch::full_like(p, 0.7);
    const auto expected =
        (p.grad().to(torch::kDouble) * inverse.to(torch::kDouble)).to(dtype);
    const auto report = optim::prepare_gradients({p}, inverse, 0);
    EXPECT_TRUE(torch::equal(p.grad(), expected));
    EXPECT_TRUE(report.norm.is_cuda());
    EXPECT_EQ(report.found_inf.item<float>(), 0);
  }
}

TEST(GpuOptimizer, AnUpdateDoesNotWaitForTheDevice) {
  const auto device = gpu();
  std::vector<DeviceTraining> trainings;
  trainings.reserve(kKinds.size());
  std::vector<Tensor> gradients;
  for (const Tensor& value : DeviceTraining::noise(1)) {
    gradients.push_back(value.to(device));
  }
  for (const char* kind : kKinds) {
    trainings.emplace_back(kind, device, torch::kFloat);
    trainings.back().update(gradients);
  }
  const auto big = torch::randn({8192, 8192}, device);
  torch::mm(big, big);
  tensor::synchronize(device);

  const int64_t begin = base::monotonic_ns();
  for (int i = 0; i < 40; ++i) torch::mm(big, big);
  for (DeviceTraining& training : trainings) training.update(gradients);
  const double queued = base::seconds_between(begin, base::monotonic_ns());
  tensor::synchronize(device);
  const double done = base::seconds_between(begin, base::monotonic_ns());
  EXPECT_LT(queued, done / 2) << "an update waited for the products before it";
}

TEST(GpuAutocast, RunsProductsInTheTypeUntilItsEnd) {
  const auto x = torch::ones({8, 8}, gpu());
  {
    const tensor::Autocast half(c10::DeviceType::CUDA, torch::kHalf);
    EXPECT_EQ(torch::mm(x, x).scalar_type(), torch::kHalf);
  }
  EXPECT_EQ(torch::mm(x, x).scalar_type(), torch::kFloat);
}

}  // namespace
}  // namespace lockstep
