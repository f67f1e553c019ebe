#include "lockstep/diffusion/pixels.h"

#include <ATen/ATen.h>

namespace lockstep::diffusion {

at::Tensor as_levels(const at::Tensor& bytes, at::ScalarType dtype) {
  return bytes.to(dtype) / 127.5 - 1;
}

at::Tensor as_bytes(const at::Tensor& levels) {
  return (levels.clamp(-1, 1) * 127.5 + 127.5).round().to(at::kByte);
}

}  // namespace lockstep::diffusion
