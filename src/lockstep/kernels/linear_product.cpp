#include "lockstep/kernels/linear_product.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <array>

#include "lockstep/kernels/cuda_call.h"
#include "lockstep/tensor/cuda_graph.h"
#include "lockstep/tensor/device.h"

namespace lockstep::kernels {
namespace {

bool is_operand(const at::Tensor& tensor) {
  return tensor.is_contiguous() &&
         reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) %
                 kProductAlignment ==
             0;
}

std::vector<ProductAlgorithm> suggestions(const LinearProductShape& shape) {
  std::array<ProductAlgorithm, kMaxProductAlgorithms> found;
  const int count =
      tensor::cuda_function<int(const LinearProductShape*, ProductAlgorithm*)>(
          "lockstep_cuda_suggest_products")(&shape, found.data());
  return {found.begin(), found.begin() + count};
}

bool is_accepted(const LinearProductShape& shape,
                 const ProductAlgorithm& algorithm) {
  return tensor::cuda_function<bool(const LinearProductShape*,
                                    const ProductAlgorithm*)>(
      "lockstep_cuda_accepts_product")(&shape, &algorithm);
}

// Nothing can be timed in a capture.
double time_of(const LinearProductRequest& request,
               const ProductAlgorithm& algorithm, void* stream) {
  if (tensor::CudaGraph::is_capturing()) return -1;
  return tensor::cuda_function<double(const LinearProductRequest*,
                                      const ProductAlgorithm*, void*)>(
      "lockstep_cuda_time_product")(&request, &algorithm, stream);
}

// Undefined when ATen has to do it.
at::Tensor product(LinearProductShape shape, const at::Tensor& rows,
                   const at::Tensor& factor, const at::Tensor& bias,
                   ProductAlgorithms* algorithms) {
  const at::ScalarType type = rows.scalar_type();
  if (algorithms == nullptr || type == at::kFloat || !has_element_type(rows) ||
      factor.scalar_type() != type || !is_operand(rows) ||
      !is_operand(factor) || shape.rows == 0) {
    return {};
  }
  shape.has_bias = bias.defined();
  if (shape.has_bias && (bias.scalar_type() != type || !is_operand(bias))) {
    return {};
  }
  shape.type = element_type(rows);
  const bool is_weight = shape.kind == LinearProductKind::kWeightGradient;
  const at::Tensor result =
      is_weight
          ? at::empty({shape.out, shape.in}, rows.options().dtype(at::kFloat))
          : at::empty({shape.rows, shape.kind == LinearProductKind::kForward
                                       ? shape.out
                                       : shape.in},
                      rows.options());
  const at::Tensor workspace =
      at::empty({kProductWorkspaceBytes}, rows.options().dtype(at::kByte));
  const LinearProductRequest request{.shape = shape,
                                     .rows = rows.const_data_ptr(),
                                     .factor = factor.const_data_ptr(),
                                     .bias = data_or_null(bias),
                                     .result = result.mutable_data_ptr(),
                                     .workspace = workspace.mutable_data_ptr()};
  void* stream = cuda_stream(rows.device());
  const auto algorithm = algorithms->find(
      shape,
      {.suggest = [&] { return suggestions(shape); },
       .time = [&](const auto& one) { return time_of(request, one, stream); },
       .accepts = [&](const auto& one) { return is_accepted(shape, one); }});
  if (!algorithm) return {};
  tensor::cuda_function<void(const LinearProductRequest*,
                             const ProductAlgorithm*, void*)>(
      "lockstep_cuda_linear_product")(&request, &*algorithm, stream);
  return result;
}

}  // namespace

c10::intrusive_ptr<ProductAlgorithms> new_product_algorithms(
    const at::Device& device) {
  const int64_t version =
      tensor::cuda_function<int64_t()>("lockstep_cuda_product_version")();
  return c10::make_intrusive<ProductAlgorithms>(
      fmt::format("{}, cuBLASLt {}", tensor::device_name(device), version));
}

at::Tensor linear_forward(const at::Tensor& x, const at::Tensor& weight,
                          const at::Tensor& bias,
                          ProductAlgorithms* algorithms) {
  const at::Tensor out = product({.kind = LinearProductKind::kForward,
                                  .rows = x.size(0),
                                  .in = x.size(1),
                                  .out = weight.size(0)},
                                 x, weight, bias, algorithms);
  return out.defined() ? out : at::linear(x, weight, bias);
}

at::Tensor linear_input_gradient(const at::Tensor& d_out,
                                 const at::Tensor& weight,
                                 ProductAlgorithms* algorithms) {
  const at::Tensor d_x = product({.kind = LinearProductKind::kInputGradient,
                                  .rows = d_out.size(0),
                                  .in = weight.size(1),
                                  .out = weight.size(0)},
                                 d_out, weight, {}, algorithms);
  return d_x.defined() ? d_x : at::mm(d_out, weight);
}

at::Tensor linear_weight_gradient(const at::Tensor& d_out, const at::Tensor& x,
                                  ProductAlgorithms* algorithms) {
  const at::Tensor d_weight =
      product({.kind = LinearProductKind::kWeightGradient,
               .rows = x.size(0),
               .in = x.size(1),
               .out = d_out.size(1)},
              d_out, x, {}, algorithms);
  return d_weight.defined() ? d_weight : at::mm(d_out.t(), x, at::kFloat);
}

}  // namespace lockstep::kernels
