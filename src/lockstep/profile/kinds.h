// Kinds of work in a training step, from the names of operations and kernels.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace lockstep::profile {

enum class Kind {
  kProducts,     // matrix products and convolutions
  kAttention,    // fused attention
  kElementwise,  // element-wise work, norms, reductions, indexing, optimizer
  kExchange,     // collectives
  kCopies,       // copies and changes of type
  kData,         // waiting for the loader
  kHost,         // everything else on the host: launches, bookkeeping, waiting
  kOther,        // names that are not known
};
constexpr size_t kNumKinds = 8;

const char* kind_name(Kind kind);

// An operation of the host: "aten::addmm", "autograd::engine::...", a call of
// the CUDA runtime.
Kind kind_of_operation(std::string_view name);

// A kernel, copy or fill of a GPU, also inside a replayed CUDA graph.
Kind kind_of_kernel(std::string_view name);

}  // namespace lockstep::profile
