// The c10d objects behind DdpEngine, and the order in which they are called.
//
// Follows the order of calls of Python's DistributedDataParallel around the
// same c10d::Reducer, so that both give the same bits. Private to parallel/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <vector>

#include "lockstep/base/status.h"
#include "lockstep/ddp.h"
#include "lockstep/parallel/bucket_layout.h"
#include "lockstep/parallel/gradient_hook.h"
#include "lockstep/parallel/module_state.h"
#include "lockstep/tensor/device.h"

namespace lockstep {

struct DdpState {
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

// The functions of DdpEngine; see there.
class DdpEngine::Impl {
 public:
  Impl(std::shared_ptr<torch::nn::Module> module, World world,
       DdpConfig config);

  void before_forward();
  void after_forward(const std::vector<at::Tensor*>& outputs);
  void set_gradient_sync(bool enabled);
  bool gradient_sync() const;
  void join(const std::function<void()>& steps, const JoinConfig& config);
  void abandon_step() { state_->reducer->reset_state(); }
  BucketLayout bucket_layout();
  const World& world() const { return world_; }

 private:
  void build_reducer(const parallel::TrainedParameters& parameters);
  BucketLayout first_layout(
      const parallel::TrainedParameters& parameters) const;
  void register_hook();
  void agree_with_other_ranks();
  void note_memory();
  void sync_module(int from);
  void broadcast_all(const std::vector<at::Tensor>& tensors, int from);
  bool will_sync_buffers() const;
  void run_sink(const std::vector<at::Tensor*>& outputs);
  [[noreturn]] void explain_reducer_error(const std::exception& error) const;

  // join()
  void notify_join();
  void announce_gradient_sync();
  bool peers_sync_gradients();
  int highest_rank_of(bool candidate);
  void shadow_step();
  at::Tensor reduce_flag(double value);

  std::shared_ptr<torch::nn::Module> module_;
  World world_;
  DdpConfig config_;
  std::shared_ptr<DdpState> state_;
};

}  // namespace lockstep
