// Gated residual connection, norm and modulation (adaLN) in one kernel.
#pragma once

#include "lockstep/kernels/adaln_residual_request.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

// What is added to the residual stream: gate * (out + bias).
struct ResidualBranch {
  at::Tensor out = {};   // [B, N, D]; undefined: nothing is added.
  at::Tensor bias = {};  // [D], or undefined.
  at::Tensor gate = {};  // [B, D]; undefined: 1.
};

struct ResidualNorm {
  NormKind kind = NormKind::kRms;
  at::Tensor weight = {};  // [D], one number, or undefined for 1.
  at::Tensor bias = {};    // [D], or undefined. For NormKind::kLayer.
  double eps = 1e-6;
};

// Shared by all tokens of a sample, [B, D] each; both or neither.
struct Modulation {
  at::Tensor shift = {};
  at::Tensor scale = {};
};

struct AdaLnResult {
  at::Tensor sum = {};     // x + gate * (out + bias), in x's type.
  at::Tensor normed = {};  // norm(sum) * (1 + scale) + shift
};

// x [B, N, D]. On a GPU one kernel forward and one backward, computed in
// float32; `normed` then has the type of branch and modulation, else the wider
// one of these and x.
AdaLnResult adaln_residual(const at::Tensor& x, const ResidualBranch& branch,
                           const ResidualNorm& norm,
                           const Modulation& modulation);

// x + gate * (out + bias)
at::Tensor add_branch(const at::Tensor& x, const ResidualBranch& branch);

// x * (1 + scale) + shift; x itself without a modulation.
at::Tensor modulate(const at::Tensor& x, const Modulation& modulation);

// x / sqrt(mean(x^2) + eps) * weight, computed and returned in the wider type
// of x and weight. weight: one number per channel, a single number, or
// undefined for 1.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

}  // namespace lockstep::kernels
