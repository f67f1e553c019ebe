// Types of tensor elements that kernels take. No torch header: CUDA sources
// include it.
#pragma once

namespace lockstep::kernels {

enum class ElementType : int { kFloat32, kFloat16, kBfloat16 };

}  // namespace lockstep::kernels
