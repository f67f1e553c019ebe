// join(): ranks that have run out of inputs stand in for the collectives of the
// others.
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include "lockstep/comm/explain.h"
#include "lockstep/error.h"
#include "lockstep/parallel/ddp_impl.h"

namespace lockstep {

at::Tensor DdpEngine::Impl::reduce_flag(double value) {
  at::Tensor flag = at::full({1}, value, at::TensorOptions(state_->device));
  world_.all_reduce(flag);
  return flag;
}

void DdpEngine::Impl::join(const std::function<void()>& steps,
                           const JoinConfig& config) {
  if (world_.size() == 1) return steps();
  if (config_.static_graph) {
    throw ConfigError("join() cannot be used with static_graph; turn it off");
  }
  state_->logger->set_uneven_input_join();
  state_->join = config;
  try {
    steps();
    bool is_last = true;
    const at::NoGradGuard no_grad;
    while (reduce_flag(0).item<float>() != 0) {
      if (config.throw_on_early_end) {
        reduce_flag(1);
        throw ConfigError(fmt::format(
            "rank {} has no more inputs while others go on; give every rank "
            "the same number of batches or allow uneven ends",
            world_.rank()));
      }
      shadow_step();
      is_last = false;
    }
    sync_module(/*from=*/highest_rank_of(is_last));
  } catch (...) {
    state_->join.reset();
    throw;
  }
  state_->join.reset();
}

// Tells ranks that have ended that this one goes on.
void DdpEngine::Impl::notify_join() {
  if (!state_->join) return;
  std::vector<at::Tensor> ones{
      at::full({1}, 1.0, at::TensorOptions(state_->device))};
  const auto work = state_->group->allreduce(ones);
  if (state_->join->throw_on_early_end && reduce_flag(0).item<float>() != 0) {
    throw ConfigError(fmt::format(
        "another rank has no more inputs while rank {} goes on; give every "
        "rank the same number of batches or allow uneven ends",
        world_.rank()));
  }
  state_->reducer->set_forward_pass_work_handle(
      work, state_->join->divide_by_initial_world_size);
}

void DdpEngine::Impl::announce_gradient_sync() {
  std::vector<at::Tensor> flag{at::full({1}, state_->sync_gradients ? 1.0 : 0.0,
                                        at::TensorOptions(state_->device))};
  state_->group->allreduce(flag);
}

bool DdpEngine::Impl::peers_sync_gradients() {
  return reduce_flag(0).item<float>() != 0;
}

int DdpEngine::Impl::highest_rank_of(bool candidate) {
  at::Tensor rank =
      at::full({1}, candidate ? world_.rank() : -1,
               at::TensorOptions(state_->device).dtype(at::kLong));
  world_.all_reduce(rank, ReduceOp::kMax);
  return rank.item<int>();
}

// The collectives of one forward and backward, with gradients of zero.
void DdpEngine::Impl::shadow_step() {
  state_->reducer->rebuild_buckets();
  if (will_sync_buffers()) {
    broadcast_all(state_->buffers, highest_rank_of(false));
  }
  const bool syncs = peers_sync_gradients();
  state_->sync_buffers_next = syncs;
  if (!syncs) return;
  std::vector<c10::intrusive_ptr<c10::ivalue::Future>> running;
  for (c10d::GradBucket& bucket : state_->reducer->get_grad_buckets()) {
    running.push_back(state_->reducer->run_comm_hook(bucket));
  }
  for (const auto& future : running) future->wait();
  if (config_.find_unused_parameters) {
    std::vector<at::Tensor> used{
        state_->reducer->get_local_used_map_on_device()};
    state_->group->allreduce(used);
  }
  state_->reducer->push_rebuilt_params_for_all_indices();
}

}  // namespace lockstep
