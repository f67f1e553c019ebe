#include "lockstep/step_graph.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "lockstep/engine/step_recorder.h"
#include "lockstep/engine/step_timer.h"
#include "lockstep/error.h"
#include "lockstep/optim/fused_update.h"
#include "lockstep/optim/gradient_step.h"
#include "lockstep/optim/parameter_list.h"
#include "lockstep/tensor/autocast.h"
#include "lockstep/tensor/stream_scope.h"

namespace lockstep {

struct TrainingStream::Impl {
  tensor::StreamScope scope;
};

TrainingStream::TrainingStream(const World& world)
    : impl_(new Impl{.scope = tensor::StreamScope(world.device())}) {}
TrainingStream::~TrainingStream() = default;

class StepGraph::Impl {
 public:
  Impl(const World& world, Optimizer& optimizer, Loss loss,
       StepGraphConfig config)
      : world_(world),
        optimizer_(optimizer),
        loss_(std::move(loss)),
        config_(std::move(config)),
        parameters_(optim::parameters_of(optimizer.groups())),
        working_weights_(new_working_weights()),
        fused_update_(optimizer, averages_, config_.max_grad_norm,
                      working_weights_.get()),
        timer_(world.device(), world.status()),
        recorder_(world, timer_,
                  {.enabled = config_.enabled,
                   .num_eager_steps = config_.num_eager_steps,
                   .max_graphs = config_.max_graphs}) {}

  at::Tensor run(double lr, const Tensors& inputs) {
    check(inputs);
    timer_.begin_step();
    if (working_weights_) working_weights_->refresh();
    const bool is_fused = fused_update_.fits();
    if (is_fused) {
      fused_update_.begin_step(lr);
    } else {
      optimizer_.set_lr(lr);
    }
    const std::vector<Batch> batches = {
        Batch{.tensors = inputs, .seeds = at::empty({0}, at::kLong)}};
    recorder_.run(batches, {.run =
                                [&](const std::vector<Batch>& own) {
                                  train(own.front().tensors, is_fused);
                                },
                            .abandon = [this] { abandon(); },
                            .can_be_captured = is_fused});
    if (std::string problem = recorder_.take_problem(); !problem.empty()) {
      problem_ = std::move(problem);
    }
    return last_loss_;
  }

  int64_t num_replays() const { return recorder_.num_replays(); }
  const std::string& problem() const { return problem_; }

 private:
  std::unique_ptr<kernels::WorkingWeights> new_working_weights() const {
    if (!config_.autocast || world_.device().is_cpu()) return nullptr;
    return std::make_unique<kernels::WorkingWeights>(parameters_,
                                                     *config_.autocast);
  }

  void check(const Tensors& inputs) const {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].defined() && inputs[i].device() == world_.device()) {
        continue;
      }
      throw ConfigError(fmt::format(
          "StepGraph::run: input {} is {}, the world is on {}; move it with "
          "to(world.device())",
          i,
          inputs[i].defined() ? "on " + inputs[i].device().str() : "undefined",
          world_.device().str()));
    }
  }

  void train(const Tensors& inputs, bool is_fused) {
    at::Tensor loss;
    {
      const tensor::Autocast autocast(world_.device().type(), config_.autocast);
      const kernels::WorkingWeights::Scope working(working_weights_.get());
      loss = loss_(inputs);
    }
    loss.backward();
    if (!last_loss_.defined()) last_loss_ = at::empty_like(loss.detach());
    last_loss_.copy_(loss.detach());
    if (is_fused) {
      fused_update_.run({});
      return;
    }
    const optim::GradientReport report =
        optim::prepare_gradients(parameters_, {}, config_.max_grad_norm);
    optimizer_.step_and_clear(report.found_inf);
    if (working_weights_) working_weights_->mark_changed();
  }

  void abandon() {
    optimizer_.clear_gradients();
    if (config_.abandon) config_.abandon();
  }

  World world_;
  Optimizer& optimizer_;
  Loss loss_;
  StepGraphConfig config_;
  std::vector<at::Tensor> parameters_;
  std::vector<Ema> averages_;                                 // None.
  std::unique_ptr<kernels::WorkingWeights> working_weights_;  // Or null.
  optim::FusedUpdate fused_update_;
  engine::StepTimer timer_;
  engine::StepRecorder recorder_;
  at::Tensor last_loss_;
  std::string problem_;
};

StepGraph::StepGraph(const World& world, Optimizer& optimizer, Loss loss,
                     StepGraphConfig config)
    : impl_(std::make_unique<Impl>(world, optimizer, std::move(loss),
                                   std::move(config))) {}
StepGraph::~StepGraph() = default;

at::Tensor StepGraph::run(double lr, const Tensors& inputs) {
  return impl_->run(lr, inputs);
}

int64_t StepGraph::num_replays() const { return impl_->num_replays(); }

std::string StepGraph::problem() const { return impl_->problem(); }

}  // namespace lockstep
