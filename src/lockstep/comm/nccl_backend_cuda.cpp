// The CUDA side of nccl_backend.cpp; part of liblockstep_cuda.
#include <nccl.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "lockstep/comm/nccl_backend.h"
#include "lockstep/comm/recorded_backend.h"

// The size of ProcessGroupNCCL::Options follows nccl.h: it must be the wheel's.
static_assert(NCCL_VERSION_CODE == NCCL_VERSION(2, 28, 9),
              "compile against the nccl.h of the wheel (nvidia-nccl-cu13)");

extern "C" {

void lockstep_cuda_make_nccl_backend(
    const lockstep::NcclRequest& request,
    c10::intrusive_ptr<c10d::Backend>& backend) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = request.timeout;
  options->group_name = "nccl";
  backend = c10::make_intrusive<lockstep::Recorded<c10d::ProcessGroupNCCL>>(
      request.status,
      c10::make_intrusive<c10d::PrefixStore>("nccl", request.store),
      request.place.rank, request.place.world_size, std::move(options));
}

const char* lockstep_cuda_last_nccl_error() {
  return ncclGetLastError(nullptr);
}

}  // extern "C"
