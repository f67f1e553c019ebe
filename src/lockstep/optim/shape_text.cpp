#include "lockstep/optim/shape_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep {

std::string shape_text(const at::Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.sizes(), ", "));
}

}  // namespace lockstep
