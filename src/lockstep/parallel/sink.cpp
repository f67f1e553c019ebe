#include "lockstep/parallel/sink.h"

#include <torch/csrc/autograd/custom_function.h>

namespace lockstep::parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Lets a C++ function ride in the saved data of an autograd node.
struct Callback final : torch::CustomClassHolder {
  explicit Callback(std::shared_ptr<std::function<void()>> f)
      : function(std::move(f)) {}
  std::shared_ptr<std::function<void()>> function;
};

struct Sink : torch::autograd::Function<Sink> {
  // Only at::TensorList arguments are tracked by apply(), not std::vector.
  static variable_list forward(AutogradContext* context,
                               const c10::intrusive_ptr<Callback>& callback,
                               at::TensorList outputs) {
    context->set_materialize_grads(false);
    context->saved_data["callback"] = c10::IValue::make_capsule(callback);
    variable_list clones;
    for (const at::Tensor& output : outputs) clones.push_back(output.clone());
    return clones;
  }

  static variable_list backward(AutogradContext* context,
                                variable_list gradients) {
    const auto capsule = context->saved_data["callback"].toCapsule();
    (*static_cast<Callback&>(*capsule).function)();
    gradients.insert(gradients.begin(), at::Tensor());  // for the callback
    return gradients;
  }
};

}  // namespace

std::vector<at::Tensor> pass_through_sink(
    const std::vector<at::Tensor>& outputs,
    std::shared_ptr<std::function<void()>> on_backward) {
  return Sink::apply(c10::make_intrusive<Callback>(std::move(on_backward)),
                     at::TensorList(outputs));
}

}  // namespace lockstep::parallel
