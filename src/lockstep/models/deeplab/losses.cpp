#include "lockstep/models/deeplab/losses.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace lockstep::deeplab {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Entropy : torch::autograd::Function<Entropy> {
  static Tensor forward(AutogradContext* context, const Tensor& logs) {
    context->save_for_backward({logs});
    return logs.exp().mul_(logs).sum(1).neg_();
  }

  // d(-e^l l) = -e^l (l + 1) dl
  static variable_list backward(AutogradContext* context,
                                variable_list gradients) {
    const Tensor logs = context->get_saved_variables()[0];
    Tensor slope = logs.exp();
    slope.addcmul_(slope, logs).mul_(gradients[0].unsqueeze(1));
    return {slope.neg_()};
  }
};

}  // namespace

Tensor resize_maps(const Tensor& maps, int64_t height, int64_t width) {
  return at::upsample_bilinear2d(maps, {height, width}, /*align_corners=*/true);
}

Tensor log_probabilities(const Tensor& logits, int64_t height, int64_t width) {
  // Log-softmax is fastest on contiguous maps; the copy is cheaper before
  // upsampling.
  const auto type = at::promoteTypes(logits.scalar_type(), at::kFloat);
  const Tensor small = logits.to(type).contiguous();
  return at::log_softmax(resize_maps(small, height, width), 1);
}

LossSum cross_entropy(const Tensor& log_probabilities, const Tensor& labels,
                      double label_smoothing) {
  const Tensor target = labels.to(at::kLong);
  Tensor sum = at::nll_loss_nd(log_probabilities, target, /*weight=*/{},
                               at::Reduction::Sum, data::kNoLabel);
  const Tensor is_labelled = labels.ne(data::kNoLabel);
  if (label_smoothing > 0) {
    const Tensor even = -(log_probabilities.mean(1) * is_labelled).sum();
    sum = (1 - label_smoothing) * sum + label_smoothing * even;
  }
  return {.sum = sum, .normaliser = is_labelled.sum().to(at::kDouble)};
}

Tensor pixel_entropy(const Tensor& log_probabilities) {
  return Entropy::apply(log_probabilities);
}

LossSum weighted_entropy(const Tensor& entropy, const Tensor& distances) {
  const Tensor products = entropy * (distances.to(entropy.scalar_type()) / 255);
  return {.sum = products.sum(),
          .normaliser = at::count_nonzero(products).to(at::kDouble)};
}

}  // namespace lockstep::deeplab
