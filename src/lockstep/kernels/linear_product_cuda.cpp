// The CUDA side of linear_product.cpp: cuBLASLt. Part of liblockstep_cuda.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cublasLt.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "lockstep/export.h"
#include "lockstep/kernels/linear_product_request.h"

namespace {

using namespace lockstep::kernels;  // NOLINT: everything here is a kernel's.

static_assert(sizeof(ProductAlgorithm) == sizeof(cublasLtMatmulAlgo_t));

void check(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("cuBLASLt: ") +
                           cublasLtGetStatusString(status));
}

cublasLtHandle_t current_handle() {
  return reinterpret_cast<cublasLtHandle_t>(
      at::cuda::getCurrentCUDABlasLtHandle());
}

struct Destroy {
  void operator()(cublasLtMatmulDesc_t d) const {
    cublasLtMatmulDescDestroy(d);
  }
  void operator()(cublasLtMatrixLayout_t l) const {
    cublasLtMatrixLayoutDestroy(l);
  }
  void operator()(cublasLtMatmulPreference_t p) const {
    cublasLtMatmulPreferenceDestroy(p);
  }
};
template <typename Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;

cudaDataType_t data_type(ElementType type) {
  return type == ElementType::kFloat16 ? CUDA_R_16F : CUDA_R_16BF;
}

Owned<cublasLtMatrixLayout_t> layout(cudaDataType_t type, int64_t rows,
                                     int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(columns), rows));
  return Owned<cublasLtMatrixLayout_t>(made);
}

// Column-major, as cuBLAS sees it: result^T = a * b, where a row-major matrix
// [n, m] is a column-major one [m, n].
class Product {
 public:
  explicit Product(const LinearProductShape& shape) {
    cublasLtMatmulDesc_t made = nullptr;
    check(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    description_.reset(made);
    const cudaDataType_t type = data_type(shape.type);
    switch (shape.kind) {
      case LinearProductKind::kForward:
        set_transposes(CUBLAS_OP_T, CUBLAS_OP_N);
        a_ = layout(type, shape.in, shape.out);
        b_ = layout(type, shape.in, shape.rows);
        result_ = layout(type, shape.out, shape.rows);
        break;
      case LinearProductKind::kInputGradient:
        set_transposes(CUBLAS_OP_N, CUBLAS_OP_N);
        a_ = layout(type, shape.in, shape.out);
        b_ = layout(type, shape.out, shape.rows);
        result_ = layout(type, shape.in, shape.rows);
        break;
      case LinearProductKind::kWeightGradient:
        set_transposes(CUBLAS_OP_N, CUBLAS_OP_T);
        a_ = layout(type, shape.in, shape.rows);
        b_ = layout(type, shape.out, shape.rows);
        result_ = layout(CUDA_R_32F, shape.in, shape.out);
        break;
    }
    if (shape.has_bias) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    }
  }

  std::vector<ProductAlgorithm> suggestions(int count) const {
    cublasLtMatmulPreference_t made = nullptr;
    check(cublasLtMatmulPreferenceCreate(&made));
    const Owned<cublasLtMatmulPreference_t> preference(made);
    const auto bytes = static_cast<uint64_t>(kProductWorkspaceBytes);
    check(cublasLtMatmulPreferenceSetAttribute(
        made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes));
    std::vector<cublasLtMatmulHeuristicResult_t> found(
        static_cast<size_t>(count));
    int num_found = 0;
    if (cublasLtMatmulAlgoGetHeuristic(current_handle(), description_.get(),
                                       a_.get(), b_.get(), result_.get(),
                                       result_.get(), made, count, found.data(),
                                       &num_found) != CUBLAS_STATUS_SUCCESS) {
      return {};
    }
    std::vector<ProductAlgorithm> algorithms;
    for (int i = 0; i < num_found; ++i) {
      if (found[static_cast<size_t>(i)].state != CUBLAS_STATUS_SUCCESS) {
        continue;
      }
      ProductAlgorithm algorithm;
      std::memcpy(&algorithm, &found[static_cast<size_t>(i)].algo,
                  sizeof algorithm);
      algorithms.push_back(algorithm);
    }
    return algorithms;
  }

  bool accepts(const ProductAlgorithm& algorithm) const {
    cublasLtMatmulHeuristicResult_t needs{};
    const cublasLtMatmulAlgo_t algo = converted(algorithm);
    return cublasLtMatmulAlgoCheck(current_handle(), description_.get(),
                                   a_.get(), b_.get(), result_.get(),
                                   result_.get(), &algo,
                                   &needs) == CUBLAS_STATUS_SUCCESS &&
           needs.workspaceSize <= static_cast<size_t>(kProductWorkspaceBytes);
  }

  cublasStatus_t run(const LinearProductRequest& request,
                     const ProductAlgorithm& algorithm, cudaStream_t stream) {
    if (request.shape.has_bias) {
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, request.bias);
    }
    const float one = 1;
    const float zero = 0;
    const cublasLtMatmulAlgo_t algo = converted(algorithm);
    return cublasLtMatmul(current_handle(), description_.get(), &one,
                          request.factor, a_.get(), request.rows, b_.get(),
                          &zero, request.result, result_.get(), request.result,
                          result_.get(), &algo, request.workspace,
                          static_cast<size_t>(kProductWorkspaceBytes), stream);
  }

 private:
  static cublasLtMatmulAlgo_t converted(const ProductAlgorithm& algorithm) {
    cublasLtMatmulAlgo_t algo;
    std::memcpy(&algo, &algorithm, sizeof algo);
    return algo;
  }

  template <typename Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    check(cublasLtMatmulDescSetAttribute(description_.get(), attribute, &value,
                                         sizeof value));
  }
  void set_transposes(cublasOperation_t a, cublasOperation_t b) {
    set(CUBLASLT_MATMUL_DESC_TRANSA, a);
    set(CUBLASLT_MATMUL_DESC_TRANSB, b);
  }

  Owned<cublasLtMatmulDesc_t> description_;
  Owned<cublasLtMatrixLayout_t> a_;
  Owned<cublasLtMatrixLayout_t> b_;
  Owned<cublasLtMatrixLayout_t> result_;
};

class Event {
 public:
  Event() { C10_CUDA_CHECK(cudaEventCreate(&event_)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

extern "C" {

LOCKSTEP_EXPORT int64_t lockstep_cuda_product_version() {
  return static_cast<int64_t>(cublasLtGetVersion());
}

// Best first, as cuBLASLt expects; returns how many.
LOCKSTEP_EXPORT int lockstep_cuda_suggest_products(
    const LinearProductShape* shape, ProductAlgorithm* out) {
  const auto found = Product(*shape).suggestions(kMaxProductAlgorithms);
  std::copy(found.begin(), found.end(), out);
  return static_cast<int>(found.size());
}

LOCKSTEP_EXPORT bool lockstep_cuda_accepts_product(
    const LinearProductShape* shape, const ProductAlgorithm* algorithm) {
  return Product(*shape).accepts(*algorithm);
}

LOCKSTEP_EXPORT void lockstep_cuda_linear_product(
    const LinearProductRequest* request, const ProductAlgorithm* algorithm,
    void* stream) {
  check(Product(request->shape)
            .run(*request, *algorithm, static_cast<cudaStream_t>(stream)));
}

// Microseconds, the median of a few runs that are left with the result; a
// negative number if the algorithm fails.
LOCKSTEP_EXPORT double lockstep_cuda_time_product(
    const LinearProductRequest* request, const ProductAlgorithm* algorithm,
    void* stream) {
  constexpr int kRuns = 5;
  constexpr int kCallsPerRun = 3;
  const auto queue = static_cast<cudaStream_t>(stream);
  Product product(request->shape);
  const Event begin;
  const Event end;
  std::vector<float> times;
  for (int run = 0; run <= kRuns; ++run) {
    C10_CUDA_CHECK(cudaEventRecord(begin, queue));
    for (int call = 0; call < kCallsPerRun; ++call) {
      if (product.run(*request, *algorithm, queue) != CUBLAS_STATUS_SUCCESS) {
        return -1;
      }
    }
    C10_CUDA_CHECK(cudaEventRecord(end, queue));
    C10_CUDA_CHECK(cudaEventSynchronize(end));
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    if (run > 0) times.push_back(milliseconds);  // The first one warms up.
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return 1000.0 * times[kRuns / 2] / kCallsPerRun;
}

}  // extern "C"
