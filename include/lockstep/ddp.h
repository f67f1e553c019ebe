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

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/export.h"
#include "lockstep/output_tensors.h"
#include "lockstep/world.h"

namespace torch::nn {
class Module;
}
namespace c10d {
class GradBucket;
}
namespace c10::ivalue {
struct Future;
}

namespace lockstep {

// Per bucket, the indices of its parameters among those that are synchronised,
// in the order of their gradients. Part of a run's numeric state: with three or
// more ranks a different layout changes the order of summation and the last
// bits.
using BucketLayout = std::vector<std::vector<size_t>>;

// A communication hook. Gets a bucket of this rank's gradients, not divided
// yet, and returns a future of the averaged tensor (or a list of one). Runs on
// the thread of the backward pass; must start the same collectives on every
// rank. Include <torch/csrc/distributed/c10d/comm.hpp> to write one.
using GradientFuture = c10::intrusive_ptr<c10::ivalue::Future>;
using GradientHook = std::function<GradientFuture(c10d::GradBucket&)>;

// Data type in which gradients are exchanged.
enum class Compression { kNone, kFp16, kBf16 };

struct DdpConfig {
  // Rank 0's buffers (running statistics) are copied to all ranks before each
  // forward.
  bool broadcast_buffers = true;
  // Search the graph for parameters that are unused in a step. Costs time;
  // needed if the set of used parameters changes between steps or ranks.
  bool find_unused_parameters = false;
  // Promise that every step uses the same parameters in the same way. Not with
  // no_sync().
  bool static_graph = false;
  // Gradients live inside the buckets: no copies, less memory.
  bool gradient_as_bucket_view = true;
  // Unset: buckets of 25 MiB, the first of 1 MiB.
  std::optional<double> bucket_cap_mb = {};
  // Full names of parameters and buffers that are not synchronised.
  std::set<std::string, std::less<>> ignored = {};
  Compression compression = Compression::kNone;
  // Custom communication hook, instead of `compression`.
  GradientHook gradient_hook = {};
  // From bucket_layout() of the resumed run.
  std::optional<BucketLayout> bucket_layout = {};
};

struct JoinConfig {
  // Divide by the number of ranks at the start, or by those that still have
  // inputs.
  bool divide_by_initial_world_size = true;
  // Throw on every rank as soon as one has no more inputs, instead of
  // continuing without it.
  bool throw_on_early_end = false;
};

// What DistributedDataParallel does around a forward pass, independent of the
// module's type.
class LOCKSTEP_EXPORT DdpEngine {
 public:
  // Checks that all ranks hold the same parameters and gives them rank 0's
  // values. Throws ConfigError for a module that DDP cannot train, or if
  // parameters differ in number or shape between ranks.
  DdpEngine(std::shared_ptr<torch::nn::Module> module, World world,
            DdpConfig config);
  ~DdpEngine();
  DdpEngine(const DdpEngine&) = delete;
  DdpEngine& operator=(const DdpEngine&) = delete;

  void before_forward();
  // May replace the tensors by ones behind the sink node.
  void after_forward(const std::vector<at::Tensor*>& outputs);

  // Throws ConfigError with static_graph, a combination that libtorch 2.11 gets
  // wrong.
  void set_gradient_sync(bool enabled);
  bool gradient_sync() const;

  // Runs `steps`, then joins the other ranks' collectives until every rank has
  // finished.
  void join(const std::function<void()>& steps, const JoinConfig& config);

  // After an exception between before_forward() and the end of backward: the
  // next step begins anew. Other ranks must leave the step out as well.
  void abandon_step();

  // A collective: every rank must call it. Valid between steps.
  BucketLayout bucket_layout();

  const World& world() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Within its scope gradients are summed on this rank only; the first backward
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

  // After a forward whose backward was not completed, before the next one: for
  // StepGraphConfig::abandon.
  void abandon_step() { engine_->abandon_step(); }

  // Which parameters share a bucket; every rank must call it. Save it in
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
