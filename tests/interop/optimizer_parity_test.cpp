// Optimizers, loss scale, clipping and averages have the bits of Python's; the
// other side is python/optimizer_reference.py.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/files.h"
#include "lockstep/ema.h"
#include "lockstep/optim/grad_scaler.h"
#include "lockstep/optim/gradient_step.h"
#include "lockstep/optimizer.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using torch::Tensor;

constexpr int kSteps = 50;
constexpr std::array kFloat = {torch::kFloat, torch::kFloat, torch::kFloat,
                               torch::kFloat, torch::kFloat};
constexpr std::array kMixed = {torch::kFloat, torch::kDouble, torch::kBFloat16,
                               torch::kFloat, torch::kDouble};
constexpr std::array kWide = {torch::kFloat, torch::kDouble, torch::kFloat,
                              torch::kFloat, torch::kDouble};
using Dtypes = std::array<torch::ScalarType, 5>;

struct Case {
  std::string name;
  std::string kind;
  OptimizerConfig config = {};
  Dtypes dtypes = kFloat;
};

const std::vector<Case> kCases = {
    {"adamw", "adamw", {.weight_decay = 0.05}},
    {"adam", "adam", {.weight_decay = 0.05}},
    {"sgd", "sgd", {.weight_decay = 0.05}},
    {"sgd_momentum", "sgd", {.momentum = 0.9, .dampening = 0.2}},
    {"sgd_nesterov",
     "sgd",
     {.weight_decay = 0.05, .momentum = 0.9, .nesterov = true}},
    {"adamw_mixed", "adamw", {.weight_decay = 0.05}, kMixed},
    {"sgd_mixed", "sgd", {.weight_decay = 0.05, .momentum = 0.9}, kWide},
};

std::vector<Tensor> noise(uint64_t number, const Dtypes& dtypes) {
  const std::vector<std::vector<int64_t>> shapes = {
      {64, 33}, {129}, {7, 5, 3}, {1}, {2000}};
  auto generator = at::detail::createCPUGenerator(number);
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < shapes.size(); ++i) {
    tensors.push_back(torch::randn(shapes[i], generator).to(dtypes[i]));
  }
  return tensors;
}

std::string bytes_of(const std::vector<Tensor>& tensors) {
  std::string bytes;
  for (const Tensor& tensor : tensors) {
    const Tensor packed = tensor.detach().contiguous();
    bytes.append(static_cast<const char*>(packed.const_data_ptr()),
                 packed.nbytes());
  }
  return bytes;
}

void set_gradients(const std::vector<Tensor>& parameters, int step,
                   const Dtypes& dtypes, const Tensor& scale) {
  const auto values = noise(static_cast<uint64_t>(step), dtypes);
  const bool is_inf = step == 4 || step == 17 || step == 18 || step == 40;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& p = parameters[i];
    p.mutable_grad() = (values[i] + 0.1 * p.detach()) * scale;
    if (is_inf && i == 2) p.grad()[0] = std::numeric_limits<double>::infinity();
    if (step % 7 == 3 && i == 1) p.mutable_grad().reset();
  }
}

std::string run(const Case& c) {
  std::vector<Tensor> parameters = noise(1000, c.dtypes);
  for (Tensor& p : parameters) p.requires_grad_();
  const auto middle = parameters.begin() + 3;
  const auto optimizer = make_optimizer(
      c.kind,
      {{.name = "first", .parameters = {parameters.begin(), middle}},
       {.name = "second",
        .parameters = {middle, parameters.end()},
        .lr_scale = 0.3,
        .weight_decay = 0.0}},
      c.config);
  optim::GradScaler scaler({.init_scale = 1024, .growth_interval = 8},
                           c10::Device("cpu"));
  std::vector<Tensor> norms;
  for (int step = 0; step < kSteps; ++step) {
    optimizer->set_lr(0.01 * (1 + 0.1 * (step % 5)));
    set_gradients(parameters, step, c.dtypes, scaler.scale_tensor());
    const optim::GradientReport report =
        optim::prepare_gradients(parameters, scaler.inverse_scale(), 5);
    norms.push_back(report.norm);
    optimizer->step_and_clear(report.found_inf);
    scaler.update(report.found_inf);
  }
  std::vector<Tensor> tensors;
  const OptimizerState state = optimizer->state();
  for (size_t i = 0; i < parameters.size(); ++i) {
    tensors.push_back(parameters[i]);
    for (const auto& [name, value] : state.parameters[i]) {
      tensors.push_back(value);
    }
  }
  tensors.insert(tensors.end(), norms.begin(), norms.end());
  tensors.push_back(scaler.state().scale);
  tensors.push_back(scaler.state().growth_tracker);
  return bytes_of(tensors);
}

std::string run_ema() {
  const std::vector<Tensor> parameters = noise(1000, kMixed);
  Ema ema(parameters, {.decay = 0.93});
  for (int step = 0; step < kSteps; ++step) {
    const auto values = noise(static_cast<uint64_t>(step), kMixed);
    for (size_t i = 0; i < parameters.size(); ++i)
      parameters[i].add_(values[i]);
    ema.update();
  }
  return bytes_of(ema.averages());
}

TEST(OptimizerParity, EqualsPythonBitForBit) {
  // The number of threads changes the order of sums.
  at::set_num_threads(1);
  const testing::TempDir folder;
  const auto python =
      testing::run({TORCH_PYTHON, PYTHON_SCRIPTS "/optimizer_reference.py",
                    folder.path().string()},
                   {.environment = {{"OMP_NUM_THREADS", "1"}},
                    .folder = "",
                    .ignored_signals = {}});
  ASSERT_EQ(python.exit_code, 0) << python.err;
  for (const Case& c : kCases) {
    const std::string theirs =
        base::read_file(folder.path() / (c.name + ".bin"));
    EXPECT_GT(theirs.size(), 10000u);
    EXPECT_TRUE(run(c) == theirs) << c.name << " differs from Python";
  }
  EXPECT_TRUE(run_ema() == base::read_file(folder.path() / "ema.bin"));
}

}  // namespace
}  // namespace lockstep
