// Model, optimizer, loss scaling and moving averages: runs one optimizer step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/ddp.h"
#include "lockstep/ema.h"
#include "lockstep/engine/precision.h"
#include "lockstep/engine/product_choice.h"
#include "lockstep/optim/fused_update.h"
#include "lockstep/optim/grad_scaler.h"
#include "lockstep/optimizer.h"
#include "lockstep/parallel/replica_check.h"
#include "lockstep/parallel/sharded_update.h"
#include "lockstep/task.h"
#include "lockstep/train_config.h"
#include "lockstep/world.h"

namespace lockstep::engine {

struct LearnerConfig {
  OptimizationConfig optimization = {};
  Precision precision = {};
  std::string recipe = {};  // For messages.
  // From the checkpoint that is resumed.
  std::optional<BucketLayout> bucket_layout = {};
};

// Sums since the last take_progress(), equal on every rank.
struct Progress {
  double loss = 0;  // Mean over steps not skipped; NaN when there is none.
  double loss_weight = 0;  // Sum of the normalisers.
  std::vector<std::pair<std::string, double>> parts = {};
  double gradient_norm = 0;      // In the last step.
  int64_t skipped_steps = 0;     // Gradient not finite: weights unchanged.
  int64_t skipped_in_a_row = 0;  // Ending with the last step.
  double loss_scale = 1;
};

// How the last step ended.
struct LastStep {
  bool is_skipped = false;  // Its gradient was not finite.
  double gradient_norm = 0;
};

// The names of the parameters that a task trains.
std::vector<std::string> trained_names(const Task& task);

// One step:  begin_step(); for each micro-batch { forward(); backward(); }
// update(). Gradients are those of (sum of all losses) / (sum of all
// normalisers), over micro-batches and ranks, also when these differ in size.
// Nothing is read back from the device before take_progress(). What differs
// from step to step is set by begin_step(): the rest of a step on a GPU can be
// captured in a CUDA graph, if updates_in_device_memory().
class Learner {
 public:
  // Moves the task's model to the device; a collective.
  Learner(Task& task, const World& world, const LearnerConfig& config);
  ~Learner();
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  void begin_step(double lr);
  // A batch of a StepLoader. Gradients are exchanged with the last micro-batch
  // of a step only.
  void forward(const Batch& batch);
  void backward();
  // After the last micro-batch of a step.
  void update();
  // After an exception in the middle of a step: if can_repeat_step(), it may be
  // done again. Buffers, generators and counters of the averages stay as they
  // are: StepRollback.
  void abandon_step();
  // The step that was begun has not changed weights or optimizer state.
  bool can_repeat_step() const { return !has_updated_; }
  // The loss has terms, which are divided by the normalisers of each
  // micro-batch and not of the step: micro-batches of another size give another
  // gradient.
  bool has_loss_terms() const { return has_loss_terms_; }
  // The step that was begun needs nothing of the host.
  bool updates_in_device_memory() const { return is_update_fused_; }

  // A collective that waits for the device.
  Progress take_progress();

  // The mean loss since take_progress(), over this rank's samples; no value
  // before the first step. Waits for the device.
  std::optional<double> own_loss() const;

  // What take_progress() will report, for this rank only. Saved in checkpoints,
  // so that a resumed run logs the same numbers.
  at::Tensor running_sums() const;
  void set_running_sums(const at::Tensor& sums);
  // Parts of the loss, as of the last forward, whose sums these are.
  const std::vector<std::string>& part_names() const { return part_names_; }
  void set_part_names(std::vector<std::string> names) {
    part_names_ = std::move(names);
  }
  // The running sums as they will be after the update of the step under way,
  // all of whose losses are computed.
  enum class Outcome { kDone, kSkipped };
  at::Tensor running_sums_after(Outcome outcome) const;
  // Equal on every rank. Waits for the device.
  LastStep last_step() const;
  void set_last_step(const LastStep& step);

  // Scope for evaluation and sampling: eval mode, no gradients, autocast, rank
  // 0's buffers. Its end restores training mode. A collective.
  class Inference {
   public:
    explicit Inference(Learner& learner);
    ~Inference();
    Inference(const Inference&) = delete;
    Inference& operator=(const Inference&) = delete;

   private:
    struct Guards;
    Learner& learner_;
    std::unique_ptr<Guards> guards_;
  };

  // Converts inputs to the model's type.
  Batch prepared(Batch batch) const;

  const TaskInfo& info() const { return info_; }
  torch::nn::Module& model() { return *model_; }
  Optimizer& optimizer() { return *optimizer_; }
  std::vector<Ema>& averages() { return averages_; }
  // Call it after weights were set from outside.
  void restart_averages();
  void weights_were_set();
  // What must be equal on all ranks: trained weights, optimizer state, averages
  // and the loss scale. Not the buffers, which rank 0 gives to all before each
  // forward. Empty where the ranks share one copy.
  std::vector<parallel::NamedTensor> replicated_tensors() const;
  // Names of the tensors in each average.
  std::vector<std::string> parameter_names() const;
  optim::GradScaler* scaler() { return scaler_ ? &*scaler_ : nullptr; }
  const Precision& precision() const { return config_.precision; }
  // Null on a CPU and with deterministic kernels.
  ProductChoice* product_choice() {
    return product_choice_ ? &*product_choice_ : nullptr;
  }
  // A collective.
  BucketLayout bucket_layout() { return ddp_->bucket_layout(); }

 private:
  double expected_normaliser() const;
  std::optional<at::Tensor> correction();
  optim::GradientReport run_update();
  optim::GradientReport update_by_parts(
      const std::optional<at::Tensor>& factor);
  void count_step(const at::Tensor& found_inf);
  // A collective.
  Loss joined(const std::vector<LossTerm>& terms, const Batch& batch) const;
  at::Tensor loss_row(const Loss& loss, const Batch& batch);

  Task& task_;
  World world_;
  LearnerConfig config_;
  TaskInfo info_;
  std::shared_ptr<torch::nn::Module> model_;
  std::unique_ptr<DdpEngine> ddp_;
  std::vector<at::Tensor> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<optim::GradScaler> scaler_;
  std::vector<Ema> averages_;
  std::unique_ptr<kernels::WorkingWeights> working_weights_;  // Or null.
  std::optional<ProductChoice> product_choice_;
  std::unique_ptr<optim::FusedUpdate> fused_update_;
  bool is_update_fused_ = false;                             // In this step.
  std::unique_ptr<parallel::ShardedUpdate> sharded_update_;  // Or null.

  at::Tensor scaled_loss_;    // Set between forward and backward.
  int64_t step_samples_ = 0;  // Samples of this step, over all ranks.
  bool has_own_normaliser_ = false;
  bool has_loss_terms_ = false;
  bool has_updated_ = false;  // In this step.
  std::vector<std::string> part_names_;
  // Loss, parts and normaliser of this step, and of all steps since
  // take_progress(). Made by the first step; a graph keeps their addresses.
  at::Tensor step_sums_;
  at::Tensor total_sums_;
  bool has_sums_ = false;  // A step was begun since take_progress().
  at::Tensor skipped_;
  at::Tensor skipped_in_a_row_;
  at::Tensor gradient_norm_;
};

}  // namespace lockstep::engine
