// DistributedDataParallel for any torch::nn::Module.
//
//   DistributedDataParallel<Net> ddp(net, world);
//   auto loss = loss_of(ddp(images), labels);
//   loss.backward();   // gradients are averaged over the ranks while this runs
//   optimizer.step();
//   net->zero_grad();
//
// Reset gradients with module->zero_grad():
// torch::optim::Optimizer::zero_grad() of libtorch 2.11 refuses gradients that
// lie in buckets.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/parallel/ddp_engine.h"
#include "lockstep/parallel/output_tensors.h"

namespace lockstep {

// While it lives, gradients are summed on this rank alone; the first backward
// of a forward after it averages the sum. For gradient accumulation.
class [[nodiscard]] NoSync {
 public:
  NoSync(DdpEngine& engine, bool active)
      : engine_(engine), ends_sync_(active && engine.gradient_sync()) {
    if (ends_sync_) engine_.set_gradient_sync(false);
  }
  ~NoSync() {
    if (ends_sync_) engine_.set_gradient_sync(true);
  }
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  DdpEngine& engine_;
  bool ends_sync_;
};

// Not thread-safe. Shares ownership of the module; must outlive the backward
// passes of its outputs.
template <typename Module>
class DistributedDataParallel {
 public:
  DistributedDataParallel(std::shared_ptr<Module> module, const World& world,
                          const DdpConfig& config = {})
      : module_(std::move(module)),
        engine_(std::make_unique<DdpEngine>(module_, world, config)) {}

  // From a holder such as torch::nn::Sequential.
  template <typename Holder>
    requires requires(const Holder& holder) {
      { holder.ptr() } -> std::convertible_to<std::shared_ptr<Module>>;
    }
  DistributedDataParallel(const Holder& holder, const World& world,
                          const DdpConfig& config = {})
      : DistributedDataParallel(std::shared_ptr<Module>(holder.ptr()), world,
                                config) {}

  // module->forward(...), any signature. Tensor arguments are moved to the
  // world's device.
  template <typename... Arguments>
  auto operator()(Arguments&&... arguments) {
    return run([&](Module& module) {
      return module.forward(moved(std::forward<Arguments>(arguments))...);
    });
  }

  // Any other use of the module as a training forward: ddp.run([&](Net& net) {
  // ... }). One backward of the result belongs to it.
  template <typename Forward>
  auto run(Forward forward) {
    engine_->before_forward();
    auto output = forward(*module_);
    std::vector<at::Tensor*> tensors;
    visit_output(output,
                 [&](at::Tensor& tensor) { tensors.push_back(&tensor); });
    engine_->after_forward(tensors);
    return output;
  }

  // auto quiet = ddp.no_sync(step % 4 != 3);  // average at every fourth step
  NoSync no_sync(bool active = true) { return NoSync(*engine_, active); }

  // For ranks with different numbers of batches: runs `steps`, then takes part
  // in the other ranks' collectives until all have finished; ends with equal
  // modules everywhere.
  void join(const std::function<void()>& steps, const JoinConfig& config = {}) {
    engine_->join(steps, config);
  }

  // Which parameters travel together; every rank must call it. Keep it in
  // checkpoints and pass it as DdpConfig::bucket_layout to resume with the same
  // bits.
  BucketLayout bucket_layout() { return engine_->bucket_layout(); }

  Module& module() { return *module_; }
  Module* operator->() { return module_.get(); }

 private:
  template <typename Argument>
  decltype(auto) moved(Argument&& argument) const {
    if constexpr (std::is_same_v<std::remove_cvref_t<Argument>, at::Tensor>) {
      return argument.to(engine_->world().device(), /*non_blocking=*/true);
    } else {
      return std::forward<Argument>(argument);
    }
  }

  std::shared_ptr<Module> module_;
  std::unique_ptr<DdpEngine> engine_;
};

template <typename Holder>
DistributedDataParallel(const Holder&, const World&, const DdpConfig& = {})
    -> DistributedDataParallel<typename Holder::ContainedType>;

}  // namespace lockstep
