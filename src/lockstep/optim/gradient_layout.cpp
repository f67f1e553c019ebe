#include "lockstep/optim/gradient_layout.h"

#include <ATen/ops/empty_like.h>
#include <fmt/format.h>

#include "lockstep/base/shape_text.h"
#include "lockstep/error.h"

namespace lockstep::optim {

at::Tensor laid_out_as(const at::Tensor& parameter,
                       const at::Tensor& gradient) {
  if (gradient.is_sparse()) {
    throw ConfigError(fmt::format(
        "the gradient of a parameter of shape {} is sparse, which the fused "
        "optimizers cannot use; build its Embedding with sparse(false)",
        base::shape_text(parameter.sizes())));
  }
  if (gradient.strides() == parameter.strides()) return gradient;
  return at::empty_like(parameter).copy_(gradient);
}

}  // namespace lockstep::optim
