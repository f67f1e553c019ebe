#include "lockstep/kernels/linear.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "lockstep/kernels/linear_product.h"
#include "lockstep/kernels/optional_tensor.h"
#include "lockstep/kernels/working_weights.h"

namespace lockstep::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct WorkingLinear {
  at::Tensor weight = {};
  at::Tensor bias = {};
  c10::intrusive_ptr<ProductAlgorithms> algorithms = {};  // Or null.
};

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  // Parameters are arguments so that their gradients reach them; the product
  // takes their copies.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& /*weight*/,
                            const OptionalTensor& bias,
                            const WorkingLinear& working) {
    const at::Tensor input = x.to(working.weight.scalar_type());
    context->save_for_backward({input, working.weight});
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["x_type"] = x.scalar_type();
    if (working.algorithms) {
      context->saved_data["algorithms"] =
          c10::IValue::make_capsule(working.algorithms);
    }
    auto sizes = input.sizes().vec();
    sizes.back() = working.weight.size(0);
    return linear_forward(input.reshape({-1, working.weight.size(1)}),
                          working.weight, working.bias,
                          working.algorithms.get())
        .view(sizes);
  }

  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& weight = saved[1];
    const at::Tensor input = saved[0].reshape({-1, weight.size(1)});
    const at::Tensor d_out = gradients[0].reshape({-1, weight.size(0)});
    at::Tensor d_x;
    at::Tensor d_weight;
    at::Tensor d_bias;
    const auto algorithms = algorithms_of(*context);
    if (context->needs_input_grad(0)) {
      d_x = linear_input_gradient(d_out, weight, algorithms.get())
                .view(saved[0].sizes())
                .to(context->saved_data["x_type"].toScalarType());
    }
    if (context->needs_input_grad(1)) {
      d_weight = linear_weight_gradient(d_out, input, algorithms.get());
    }
    if (context->saved_data["has_bias"].toBool()) {
      d_bias = d_out.sum(0, /*keepdim=*/false, at::kFloat);
    }
    return {d_x, d_weight, d_bias, {}};
  }

 private:
  static c10::intrusive_ptr<ProductAlgorithms> algorithms_of(
      AutogradContext& context) {
    const auto at = context.saved_data.find("algorithms");
    if (at == context.saved_data.end()) return {};
    return c10::static_intrusive_pointer_cast<ProductAlgorithms>(
        at->second.toCapsule());
  }
};

// The identity; sums the bias' gradient.
class BiasGradientFunction
    : public torch::autograd::Function<BiasGradientFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& out,
                            const at::Tensor& bias) {
    context->saved_data["size"] = bias.numel();
    return out.view_as(out);
  }
  static variable_list backward(AutogradContext* context,
                                const variable_list& gradients) {
    const int64_t size = context->saved_data["size"].toInt();
    return {
        gradients[0],
        gradients[0].reshape({-1, size}).sum(0, /*keepdim=*/false, at::kFloat)};
  }
};

// None where at::linear is the right call.
std::optional<WorkingLinear> working_copies(const at::Tensor& weight,
                                            const at::Tensor& bias) {
  const WorkingWeights* copies = WorkingWeights::current();
  if (copies == nullptr || !weight.is_cuda()) return {};
  WorkingLinear found{.weight = copies->find(weight),
                      .algorithms = copies->algorithms()};
  if (!found.weight.defined()) return {};
  if (!bias.defined()) return found;
  found.bias = copies->find(bias);
  if (!found.bias.defined()) return {};
  return found;
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight,
                  const at::Tensor& bias) {
  const auto copies = working_copies(weight, bias);
  if (!copies || x.numel() == 0) return at::linear(x, weight, bias);
  return LinearFunction::apply(x, weight, optional(bias), *copies);
}

LinearResult linear_leaving_bias(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias) {
  const auto copies = working_copies(weight, bias);
  if (!copies || x.numel() == 0 || !bias.defined()) {
    return {.out = linear(x, weight, bias)};
  }
  return {.out = LinearFunction::apply(x, weight, OptionalTensor(), *copies),
          .bias = bias};
}

at::Tensor with_bias_gradient(const LinearResult& result) {
  if (!result.bias.defined()) return result.out;
  return BiasGradientFunction::apply(result.out, result.bias);
}

}  // namespace lockstep::kernels
