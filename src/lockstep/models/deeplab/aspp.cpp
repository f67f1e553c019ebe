#include "lockstep/models/deeplab/aspp.h"

#include <fmt/format.h>
#include <torch/torch.h>

namespace lockstep::deeplab {
namespace {

using at::Tensor;

constexpr double kDropout = 0.5;

torch::nn::Conv2d conv1x1(int64_t inputs, int64_t outputs) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(inputs, outputs, 1).bias(false));
}

}  // namespace

class Aspp::Branch : public torch::nn::Module {
 public:
  explicit Branch(const torch::nn::Conv2d& conv)
      : conv_(register_module("atrous_conv", conv)),
        norm_(register_module("bn",
                              SyncBatchNorm(conv->options.out_channels()))) {}

  Tensor forward(const Tensor& x) {
    return norm_->forward(conv_->forward(x)).relu_();
  }

 private:
  torch::nn::Conv2d conv_;
  SyncBatchNorm norm_;
};

double aspp_products(const AsppConfig& config, double pixels) {
  const auto inputs = static_cast<double>(config.inputs);
  const auto outputs = static_cast<double>(config.outputs);
  return pixels * outputs * ((1 + 3 * 9) * inputs + 5 * outputs) +
         inputs * outputs;
}

Aspp::Aspp(const AsppConfig& config) {
  const auto add = [this](const torch::nn::Conv2d& conv) {
    branches_.push_back(
        register_module(fmt::format("aspp{}", branches_.size() + 1),
                        std::make_shared<Branch>(conv)));
  };
  add(conv1x1(config.inputs, config.outputs));
  for (const int64_t dilation : config.dilations) {
    add(torch::nn::Conv2d(
        torch::nn::Conv2dOptions(config.inputs, config.outputs, 3)
            .padding(dilation)
            .dilation(dilation)
            .bias(false)));
  }
  global_ = register_module(
      "global_avg_pool",
      torch::nn::Sequential(
          torch::nn::AdaptiveAvgPool2d(1),
          conv1x1(config.inputs, config.outputs), SyncBatchNorm(config.outputs),
          torch::nn::ReLU(torch::nn::ReLUOptions().inplace(true))));
  const torch::nn::Conv2d join = conv1x1(5 * config.outputs, config.outputs);
  const SyncBatchNorm norm(config.outputs);
  if (config.end == AsppEnd::kLogits) {
    conv1_ = register_module("conv1", join);
    bn1_ = register_module("bn1", norm);
    return;
  }
  project_ = register_module(
      "prject",
      torch::nn::Sequential(
          join, norm, torch::nn::ReLU(torch::nn::ReLUOptions().inplace(true)),
          torch::nn::Dropout(kDropout)));
}

Tensor Aspp::forward(const Tensor& x) {
  std::vector<Tensor> views;
  for (const auto& branch : branches_) views.push_back(branch->forward(x));
  // Bilinear upsampling of one pixel repeats it. The memory format of 1 x 1
  // maps is ambiguous: cat() would not keep channels-last.
  const Tensor whole = global_->forward(x).expand_as(views[0]);
  views.push_back(whole.contiguous(views[0].suggest_memory_format()));
  const Tensor all = at::cat(views, 1);
  return project_ ? project_->forward(all)
                  : bn1_->forward(conv1_->forward(all));
}

}  // namespace lockstep::deeplab
