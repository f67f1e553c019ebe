#include "lockstep/parallel/gradient_hook.h"

#include <ATen/core/ivalue.h>

#include <torch/csrc/distributed/c10d/comm.hpp>

namespace lockstep::parallel {
namespace {

using c10::ivalue::Future;

at::Tensor first_tensor(const Future& future) {
  return c10d::detail::parseCppCommHookResult(future.constValue());
}

}  // namespace

GradientHook compress_gradients(
    const c10::intrusive_ptr<c10d::ProcessGroup>& group,
    c10::ScalarType dtype) {
  return [group, dtype](c10d::GradBucket& bucket) -> GradientFuture {
    at::Tensor buffer = bucket.getBuffer();
    // Cast, then divide, then sum: Python's order, and no overflow in fp16.
    std::vector<at::Tensor> sent{buffer.to(dtype).div_(group->getSize())};
    return group->allreduce(sent)->getFuture()->then(
        [buffer](Future& reduced) -> c10::IValue {
          buffer.copy_(first_tensor(reduced));
          return buffer;
        },
        c10::TensorType::get());
  };
}

GradientHook keep_gradients() {
  return [](c10d::GradBucket& bucket) -> GradientFuture {
    auto future = c10::make_intrusive<Future>(c10::TensorType::get());
    future->markCompleted(bucket.getBuffer());
    return future;
  };
}

}  // namespace lockstep::parallel
