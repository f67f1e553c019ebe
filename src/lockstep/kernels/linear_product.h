// The matrix products of linear layers in half precision on a GPU.
#pragma once

#include "lockstep/kernels/product_algorithms.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep::kernels {

// Algorithms for the products of a device.
c10::intrusive_ptr<ProductAlgorithms> new_product_algorithms(
    const at::Device& device);

// x [rows, in] * weight^T [in, out] + bias, which may be undefined. As the
// other two: by the chosen algorithm, by ATen where `algorithms` is null or has
// none.
at::Tensor linear_forward(const at::Tensor& x, const at::Tensor& weight,
                          const at::Tensor& bias,
                          ProductAlgorithms* algorithms);

// d_out [rows, out] * weight [out, in]
at::Tensor linear_input_gradient(const at::Tensor& d_out,
                                 const at::Tensor& weight,
                                 ProductAlgorithms* algorithms);

// d_out^T [out, rows] * x [rows, in], in float32
at::Tensor linear_weight_gradient(const at::Tensor& d_out, const at::Tensor& x,
                                  ProductAlgorithms* algorithms);

}  // namespace lockstep::kernels
