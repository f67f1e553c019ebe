// NCCL, the GPU transport; lives in the CUDA parts.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>

#include "lockstep/base/status.h"
#include "lockstep/comm/place.h"

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace lockstep::comm {

struct NcclRequest {
  c10::intrusive_ptr<c10d::Store> store;
  Place place;
  c10::Device device;
  std::chrono::milliseconds timeout{0};
  base::StatusWriter status;
};

// Not connected yet: c10d::ProcessGroup binds the device first, then connects.
c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const NcclRequest& request);

// NCCL's own words for the last error of this process; empty without CUDA
// parts.
std::string last_nccl_error();

}  // namespace lockstep::comm
