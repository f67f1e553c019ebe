// Training steps of an own loop as CUDA graphs: forward, backward, exchange of
// gradients and update are captured once per shape of the inputs and replayed,
// so that a step costs the host one launch.
//
//   TrainingStream stream(world);          // before module and DDP
//   DistributedDataParallel ddp(net, world);
//   AdamW optimizer(net->parameters());
//   StepGraph step(world, optimizer, [&](const auto& in) {
//     return torch::mse_loss(ddp(in[0]), in[1]);
//   });
//   for (...) step.run(lr, {images, targets});
//
// On a CPU the same loop does the same steps without graphs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/export.h"
#include "lockstep/optimizer.h"
#include "lockstep/world.h"

namespace lockstep {

// Until its end this thread's work on a GPU goes to a stream of its own: the
// default stream cannot be captured. What a training uses must be made after
// it. Nothing on a CPU.
class LOCKSTEP_EXPORT TrainingStream {
 public:
  explicit TrainingStream(const World& world);
  ~TrainingStream();
  TrainingStream(const TrainingStream&) = delete;
  TrainingStream& operator=(const TrainingStream&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct StepGraphConfig {
  bool enabled = true;  // False: kernels are launched one by one.
  // At least 12 with DDP, whose Reducer still rebuilds and times its buckets.
  int64_t num_eager_steps = 12;
  size_t max_graphs = 16;    // One per shape of the inputs.
  double max_grad_norm = 0;  // Clips gradients; 0: no clipping.
  // Mixed precision: at::kBFloat16. The optimizer keeps copies of the weights
  // for the layers of lockstep/fused.h.
  std::optional<at::ScalarType> autocast = {};
  // Called when a capture fails, before the step is run without a graph. With
  // DDP: DistributedDataParallel::abandon_step().
  std::function<void()> abandon = {};
};

// Not thread-safe. The loss function must launch the same work for inputs of
// equal shapes: it reads nothing back from the GPU (no item()), and what it
// uses besides its inputs keeps its place in memory. Random numbers of the
// GPU's generator differ from step to step as they should.
class LOCKSTEP_EXPORT StepGraph {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Loss = std::function<at::Tensor(const Tensors& inputs)>;

  // The optimizer must outlive it.
  StepGraph(const World& world, Optimizer& optimizer, Loss loss,
            StepGraphConfig config = {});
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  // One step: loss, backward, clipping, update. The inputs lie on the world's
  // device. Returns the loss without waiting for it; the next step overwrites
  // it. A step whose gradient is not finite changes no weight.
  at::Tensor run(double lr, const Tensors& inputs);

  int64_t num_replays() const;
  // Why steps are not captured; empty unless a capture failed.
  std::string problem() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
