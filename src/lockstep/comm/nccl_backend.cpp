#include "lockstep/comm/nccl_backend.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "lockstep/tensor/cuda_library.h"

namespace lockstep::comm {

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(
    const NcclRequest& request) {
  c10::intrusive_ptr<c10d::Backend> backend;
  tensor::cuda_function<void(const NcclRequest&,
                             c10::intrusive_ptr<c10d::Backend>&)>(
      "lockstep_cuda_make_nccl_backend")(request, backend);
  return backend;
}

std::string last_nccl_error() {
  void* symbol = tensor::find_cuda_symbol("lockstep_cuda_last_nccl_error");
  if (symbol == nullptr) return "";
  return reinterpret_cast<const char* (*)()>(symbol)();
}

}  // namespace lockstep::comm
