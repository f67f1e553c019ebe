#include "lockstep/tensor/tf32.h"

namespace lockstep::tensor {
namespace {

constexpr auto kCuda = at::Float32Backend::CUDA;
constexpr auto kConvolution = at::Float32Op::CONV;

}  // namespace

Tf32Convolutions::Tf32Convolutions()
    : saved_(at::globalContext().float32Precision(kCuda, kConvolution)) {
  at::globalContext().setFloat32Precision(kCuda, kConvolution,
                                          at::Float32Precision::TF32);
}

Tf32Convolutions::~Tf32Convolutions() {
  at::globalContext().setFloat32Precision(kCuda, kConvolution, saved_);
}

}  // namespace lockstep::tensor
