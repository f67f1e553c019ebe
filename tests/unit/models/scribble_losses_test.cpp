#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/models/deeplab/lorm.h"
#include "lockstep/models/deeplab/losses.h"
#include "lockstep/tensor/autocast.h"

namespace lockstep {
namespace {

using torch::Tensor;
namespace F = torch::nn::functional;

double relative(const Tensor& ours, const Tensor& expected) {
  EXPECT_EQ(ours.sizes(), expected.sizes());
  return (ours - expected).norm().item<double>() /
         expected.norm().item<double>();
}

Tensor some_labels(int64_t classes) {
  const Tensor labels = torch::randint(classes, {2, 9, 9}).to(at::kByte);
  return labels.masked_fill(torch::rand({2, 9, 9}) < 0.4, data::kNoLabel);
}

TEST(ScribbleLosses, CrossEntropyIsTorchs) {
  torch::manual_seed(1);
  const Tensor labels = some_labels(5);
  const Tensor before = labels.clone();
  for (const double smoothing : {0., 0.1}) {
    const Tensor logits = torch::randn({2, 5, 3, 3}, at::kDouble);
    const Tensor a = logits.clone().requires_grad_();
    const Tensor b = logits.clone().requires_grad_();
    const deeplab::LossSum ours = deeplab::cross_entropy(
        deeplab::log_probabilities(a, 9, 9), labels, smoothing);
    (ours.sum / ours.normaliser).backward();
    const Tensor grown = F::interpolate(b, F::InterpolateFuncOptions()
                                               .size(std::vector<int64_t>{9, 9})
                                               .mode(torch::kBilinear)
                                               .align_corners(true));
    const Tensor theirs = F::cross_entropy(grown, labels.to(at::kLong),
                                           F::CrossEntropyFuncOptions()
                                               .ignore_index(data::kNoLabel)
                                               .label_smoothing(smoothing));
    theirs.backward();
    EXPECT_LT(relative(ours.sum / ours.normaliser, theirs), 1e-12);
    EXPECT_LT(relative(a.grad(), b.grad()), 1e-12);
  }
  EXPECT_TRUE(torch::equal(labels, before));
}

TEST(ScribbleLosses, EntropyIsWeightedByDistances) {
  torch::manual_seed(2);
  const Tensor data = torch::randn({2, 4, 6, 6}, at::kDouble);
  const Tensor a = data.clone().requires_grad_();
  const Tensor b = data.clone().requires_grad_();
  const Tensor distances = torch::randint(256, {2, 6, 6})
                               .masked_fill(torch::rand({2, 6, 6}) < 0.3, 0)
                               .to(at::kByte);
  const deeplab::LossSum ours = deeplab::weighted_entropy(
      deeplab::pixel_entropy(deeplab::log_probabilities(a, 6, 6)), distances);
  ours.sum.backward();
  const Tensor p = b.softmax(1);
  const Tensor entropy =
      -(p * p.log()).sum(1) * distances.to(at::kDouble) / 255;
  entropy.sum().backward();
  EXPECT_LT(relative(ours.sum, entropy.sum()), 1e-12);
  EXPECT_LT(relative(a.grad(), b.grad()), 1e-12);
  EXPECT_EQ(ours.normaliser.item<int64_t>(),
            distances.count_nonzero().item<int64_t>());
}

TEST(ScribbleLosses, NothingToScoreIsZeroOverZero) {
  const Tensor logits = torch::randn({1, 3, 4, 4}).requires_grad_();
  const Tensor logs = deeplab::log_probabilities(logits, 4, 4);
  const Tensor none = torch::full({1, 4, 4}, data::kNoLabel, at::kByte);
  const deeplab::LossSum labelled = deeplab::cross_entropy(logs, none, 0.1);
  const deeplab::LossSum weighted = deeplab::weighted_entropy(
      deeplab::pixel_entropy(logs), torch::zeros({1, 4, 4}, at::kByte));
  (labelled.sum + weighted.sum).backward();
  for (const Tensor& value : {labelled.sum, labelled.normaliser, weighted.sum,
                              weighted.normaliser, logits.grad().abs().max()}) {
    EXPECT_EQ(value.item<float>(), 0);
  }
}

TEST(ScribbleLosses, AreFloatForHalfLogits) {
  const Tensor logits = torch::randn({1, 3, 4, 4}).to(at::kHalf);
  const Tensor logs = deeplab::log_probabilities(logits, 8, 8);
  EXPECT_EQ(logs.scalar_type(), at::kFloat);
  EXPECT_LT((logs.exp().sum(1) - 1).abs().max().item<float>(), 1e-5);
}

struct LormCase {
  deeplab::Lorm module;
  Tensor features;
  Tensor classes;
};

LormCase make_lorm_case(const deeplab::LormConfig& config,
                        at::ScalarType type) {
  LormCase made{.module = deeplab::Lorm(config),
                .features = torch::randn({3, config.width, 5, 4}).relu_(),
                .classes = torch::zeros({3, 9, 7}, at::kByte)};
  // The first has some foreground, the second none, the third nothing else.
  made.classes[0].slice(0, 0, 4).fill_(7);
  made.classes[0][4].fill_(data::kNoLabel);
  made.classes[1].fill_(data::kNoLabel);
  made.classes[2].fill_(3);
  const torch::NoGradGuard no_grad;
  for (Tensor& parameter : made.module.parameters()) {
    parameter.add_(torch::randn_like(parameter) * 0.3);
  }
  made.module.to(type);
  made.features = made.features.to(type);
  return made;
}

// The formula of the original, with all matrices.
Tensor plain_residual(const LormCase& made, const Tensor& x) {
  const auto all = made.module.named_parameters();
  const auto project = [&](const std::string& name) {
    return torch::conv2d(x, all[name + ".weight"], all[name + ".bias"])
        .flatten(2)
        .transpose(1, 2);
  };
  const Tensor q = project("query_conv");
  const Tensor k = project("key_conv");
  const Tensor norms = q.norm(2, -1).unsqueeze(2) * k.norm(2, -1).unsqueeze(1);
  const Tensor ids =
      torch::where(made.classes == data::kNoLabel, 0, made.classes)
          .to(at::kFloat)
          .unsqueeze(1);
  const Tensor is_front = (deeplab::resize_maps(ids, x.size(2), x.size(3)) > 0)
                              .flatten(2)
                              .transpose(1, 2);
  const Tensor attention =
      (torch::bmm(q, k.transpose(1, 2)) / norms).softmax(-1) * is_front;
  const Tensor values = x.flatten(2).transpose(1, 2);
  return (values - all["gamma"] * torch::bmm(attention, values)).square();
}

struct LormTest {
  at::ScalarType type = at::kFloat;
  double tolerance = 1e-5;
  int64_t block_entries = 1 << 22;
  at::MemoryFormat format = at::MemoryFormat::Contiguous;
};

void expect_plain_lorm(const LormTest& test) {
  torch::manual_seed(3);
  LormCase made = make_lorm_case(
      {.width = 16, .block_entries = test.block_entries}, test.type);
  const Tensor before = made.classes.clone();
  const Tensor x =
      made.features.contiguous(test.format).clone().requires_grad_();
  const deeplab::LossSum ours = made.module.forward(x, made.classes);
  (ours.sum / ours.normaliser).backward();
  std::map<std::string, Tensor> gradients;
  for (const auto& item : made.module.named_parameters()) {
    gradients[item.key()] = item.value().grad().clone();
  }
  made.module.zero_grad();
  const Tensor y = made.features.clone().requires_grad_();
  const Tensor plain = plain_residual(made, y);
  (plain.sum() / plain.count_nonzero()).backward();
  EXPECT_LT(relative(ours.sum, plain.sum()), test.tolerance);
  EXPECT_EQ(ours.normaliser.item<int64_t>(),
            plain.count_nonzero().item<int64_t>());
  EXPECT_LT(relative(x.grad(), y.grad()), test.tolerance);
  for (const auto& item : made.module.named_parameters()) {
    EXPECT_LT(relative(gradients[item.key()], item.value().grad()),
              test.tolerance)
        << item.key();
  }
  EXPECT_TRUE(torch::equal(made.classes, before));
}

TEST(ScribbleLorm, EqualsThePlainFormulaInValueAndGradients) {
  const auto last = at::MemoryFormat::ChannelsLast;
  expect_plain_lorm({});
  // Three rows at a time.
  expect_plain_lorm({.block_entries = 60});
  expect_plain_lorm({.block_entries = 60, .format = last});
  expect_plain_lorm(
      {.type = at::kDouble, .tolerance = 1e-12, .block_entries = 60});
  expect_plain_lorm({.type = at::kDouble, .tolerance = 1e-12, .format = last});
}

TEST(ScribbleLorm, GivesAllParametersAGradientWithoutForeground) {
  deeplab::Lorm module({.width = 8});
  const Tensor x = torch::randn({2, 8, 3, 3}).requires_grad_();
  module.forward(x, torch::zeros({2, 9, 9}, at::kByte)).sum.backward();
  EXPECT_LT(relative(x.grad(), 2 * x.detach()), 1e-6);
  for (const auto& item : module.named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_EQ(item.value().grad().abs().max().item<float>(), 0) << item.key();
  }
}

TEST(ScribbleLorm, HoldsInHalfPrecision) {
  torch::manual_seed(6);
  deeplab::Lorm module({.width = 64});
  const Tensor features = torch::randn({2, 64, 6, 6}).relu_();
  const Tensor classes = torch::ones({2, 12, 12}, at::kByte);
  const auto run = [&](std::optional<at::ScalarType> type) {
    const Tensor x = features.clone().requires_grad_();
    Tensor sum;
    {
      const tensor::Autocast autocast(at::kCPU, type);
      const Tensor input = type ? x.to(*type) : x;
      sum = module.forward(input, classes).sum;
    }
    sum.backward();
    return std::pair(sum.detach(), x.grad());
  };
  const auto exact = run({});
  const auto half = run(at::kBFloat16);
  EXPECT_EQ(half.first.scalar_type(), at::kFloat);
  EXPECT_LT(relative(half.first, exact.first), 1e-2);
  EXPECT_LT(relative(half.second, exact.second), 2e-2);
}

// Bytes that this thread holds and has held at most.
class MemoryCount : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* pointer, int64_t size, size_t /*allocated*/,
                         size_t /*reserved*/, c10::Device /*device*/) override {
    if (pointer == nullptr) return;
    now_ += size;
    peak_ = std::max(peak_, now_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t now() const { return now_; }
  int64_t peak() const { return peak_; }

 private:
  int64_t now_ = 0;
  int64_t peak_ = 0;
};

struct Memory {
  double kept = 0;  // between forward and backward
  double peak = 0;
};

Memory lorm_memory(int64_t side) {
  deeplab::Lorm module({.width = 8, .block_entries = 4096});
  const Tensor x = torch::randn({1, 8, side, side}).requires_grad_();
  const Tensor classes = torch::ones({1, side, side}, at::kByte);
  const auto count = std::make_shared<MemoryCount>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, count);
  const Tensor sum = module.forward(x, classes).sum;
  Memory memory{.kept = static_cast<double>(count->now()), .peak = 0};
  sum.backward();
  memory.peak = static_cast<double>(count->peak());
  return memory;
}

TEST(ScribbleLorm, MemoryGrowsWithPixelsAndNotWithTheirSquare) {
  at::set_num_threads(1);
  const Memory small = lorm_memory(16);
  const Memory large = lorm_memory(64);  // 16 times the pixels
  EXPECT_GT(small.kept, 256 * 8 * 4);
  EXPECT_LT(large.kept, 17 * small.kept);
  EXPECT_LT(large.peak, 17 * small.peak);
  // One matrix of pixels by pixels would be 64 MiB.
  EXPECT_LT(large.peak, 4e6);
}

}  // namespace
}  // namespace lockstep
