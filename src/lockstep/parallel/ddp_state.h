// The c10d objects behind DdpEngine. Private to parallel/.
#pragma once

#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "lockstep/parallel/ddp_engine.h"

namespace lockstep {

struct DdpEngine::State {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::shared_ptr<c10d::Reducer> reducer;
  std::shared_ptr<c10d::Logger> logger;
  std::vector<std::string> names;
  c10::Device device{c10::DeviceType::CPU};
  std::vector<at::Tensor> buffers;

  // Python's require_backward_grad_sync and require_forward_param_sync.
  bool sync_gradients = true;
  bool sync_buffers_next = true;
  std::shared_ptr<std::function<void()>> on_backward;
  bool delayed_reduce_queued = false;
  int64_t memory_noted_ns = 0;

  // Set while join() runs.
  std::optional<JoinConfig> join;
};

}  // namespace lockstep
