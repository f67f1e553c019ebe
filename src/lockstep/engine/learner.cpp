#include "lockstep/engine/learner.h"

#include <torch/torch.h>

#include <set>

#include "lockstep/engine/loss_check.h"
#include "lockstep/error.h"
#include "lockstep/optim/frozen.h"
#include "lockstep/optim/gradient_step.h"
#include "lockstep/optim/parameter_list.h"
#include "lockstep/sync_batch_norm.h"
#include "lockstep/tensor/autocast.h"

namespace lockstep::engine {
namespace {

OptimizerConfig optimizer_config(const OptimizationConfig& config) {
  return {.lr = config.lr,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .eps = config.eps,
          .weight_decay = config.weight_decay,
          .momentum = config.momentum,
          .nesterov = config.nesterov};
}

std::vector<std::string> names_of(const std::vector<at::Tensor>& parameters,
                                  const torch::nn::Module& model) {
  const auto named = model.named_parameters();
  std::vector<std::string> names;
  for (const at::Tensor& parameter : parameters) {
    for (const auto& item : named) {
      if (!item.value().is_same(parameter)) continue;
      names.push_back(item.key());
      break;  // A tied parameter has several names; one is enough.
    }
  }
  return names;
}

// A layout saved with a different set of trained parameters is not used.
// Settings such as jit's --enable_condition change that set.
std::optional<BucketLayout> fitting(std::optional<BucketLayout> layout,
                                    const torch::nn::Module& model) {
  if (!layout) return {};
  std::set<const c10::TensorImpl*> trained;  // A tied parameter counts once.
  for (const at::Tensor& parameter : model.parameters()) {
    if (parameter.requires_grad())
      trained.insert(parameter.unsafeGetTensorImpl());
  }
  size_t num_saved = 0;
  for (const auto& bucket : *layout) num_saved += bucket.size();
  if (num_saved != trained.size()) layout.reset();
  return layout;
}

}  // namespace

Learner::Learner(Task& task, const World& world, const LearnerConfig& config)
    : task_(task),
      world_(world),
      config_(config),
      info_(task.info()),
      model_(task.model()) {
  model_->to(world.device(), config.precision.dtype);
  if (info_.sync_batch_norm) connect_sync_batch_norms(*model_, world);
  optim::train_except_frozen(*model_);
  auto groups = task.parameter_groups();
  parameters_ = optim::parameters_of(groups);
  if (parameters_.empty()) {
    throw ConfigError("the model has no parameter to train");
  }
  ddp_ = std::make_unique<DdpEngine>(
      model_, world,
      DdpConfig{.find_unused_parameters = info_.has_unused_parameters,
                .bucket_layout = fitting(config.bucket_layout, *model_)});
  optimizer_ = make_optimizer(config.optimization.optimizer, std::move(groups),
                              optimizer_config(config.optimization));
  if (config.precision.scales_loss) {
    scaler_.emplace(optim::GradScalerConfig{}, world.device());
  }
  for (const double decay : config.optimization.ema_decay) {
    averages_.emplace_back(
        parameters_,
        EmaConfig{.decay = decay, .warmup = config.optimization.ema_warmup});
  }
  if (config.precision.autocast && world.device().is_cuda()) {
    working_weights_ = std::make_unique<kernels::WorkingWeights>(
        parameters_, *config.precision.autocast);
    if (!at::globalContext().deterministicAlgorithms()) {
      product_choice_.emplace(world, *working_weights_);
    }
  }
  fused_update_ = std::make_unique<optim::FusedUpdate>(
      *optimizer_, averages_, config.optimization.max_grad_norm,
      working_weights_.get());
  if (config.optimization.shard_optimizer && world.size() > 1) {
    sharded_update_ = std::make_unique<parallel::ShardedUpdate>(
        world, *optimizer_, averages_, config.optimization.max_grad_norm);
  }
  const auto options = at::TensorOptions().device(world.device());
  skipped_ = torch::zeros({}, options.dtype(at::kFloat));
  skipped_in_a_row_ = torch::zeros({}, options.dtype(at::kFloat));
  gradient_norm_ = torch::zeros({}, options.dtype(at::kFloat));
}

Learner::~Learner() = default;

std::vector<std::string> Learner::parameter_names() const {
  return names_of(parameters_, *model_);
}

std::vector<std::string> trained_names(const Task& task) {
  return names_of(optim::parameters_of(task.parameter_groups()), *task.model());
}

Batch Learner::prepared(Batch batch) const {
  if (config_.precision.dtype == at::kFloat) return batch;
  for (at::Tensor& tensor : batch.tensors) {
    if (tensor.is_floating_point()) tensor = tensor.to(config_.precision.dtype);
  }
  return batch;
}

// Converts terms to a sum over samples whose mean is the weighted sum of all
// terms.
Loss Learner::joined(const std::vector<LossTerm>& terms,
                     const Batch& batch) const {
  std::vector<at::Tensor> counts;
  counts.reserve(terms.size() + 1);
  for (const LossTerm& term : terms) {
    counts.push_back(term.normaliser.detach().to(at::kDouble));
  }
  counts.push_back(
      torch::full({}, static_cast<double>(batch.size()), counts[0].options()));
  at::Tensor totals = torch::stack(counts);
  if (batch.is_filler) totals.zero_();
  world_.all_reduce(totals);
  const at::Tensor samples = totals[-1];
  Loss loss;
  for (size_t i = 0; i < terms.size(); ++i) {
    const at::Tensor count = totals[static_cast<int64_t>(i)];
    const at::Tensor factor =
        torch::where(count > 0, samples / count, torch::zeros_like(count));
    const at::Tensor sum = terms[i].sum * factor.to(terms[i].sum.dtype());
    loss.parts.emplace_back(terms[i].name, sum);
    const at::Tensor weighted = sum * terms[i].weight;
    loss.sum = loss.sum.defined() ? loss.sum + weighted : weighted;
  }
  return loss;
}

// Loss, its parts and the normaliser, in double so that long sums stay
// accurate.
at::Tensor Learner::loss_row(const Loss& loss, const Batch& batch) {
  std::vector<at::Tensor> row = {loss.sum.detach()};
  part_names_.clear();
  for (const auto& [name, value] : loss.parts) {
    part_names_.push_back(name);
    row.push_back(value.detach());
  }
  row.push_back(has_own_normaliser_
                    ? loss.normaliser.detach()
                    : torch::full({}, static_cast<double>(batch.size()),
                                  row[0].options().dtype(at::kDouble)));
  return torch::stack(row).to(at::kDouble);
}

// The number of samples is exact. A task's own normaliser is known only after
// all micro-batches: until then an estimate is used, which correction()
// replaces with the true value.
double Learner::expected_normaliser() const {
  const auto samples = static_cast<double>(step_samples_);
  return has_own_normaliser_ ? samples * info_.normaliser_per_sample : samples;
}

void Learner::forward(const Batch& batch) {
  step_samples_ = batch.step.num_samples;
  ddp_->set_gradient_sync(batch.ends_step());
  ddp_->before_forward();
  const Batch inputs = prepared(batch);
  SampleRandom random(batch.seeds);
  Loss loss;
  {
    const tensor::Autocast autocast(world_.device().type(),
                                    config_.precision.autocast);
    const kernels::WorkingWeights::Scope working(working_weights_.get());
    loss = task_.loss(inputs, random);
  }
  check_loss(loss, config_.recipe);
  has_loss_terms_ = !loss.terms.empty();
  if (has_loss_terms_) loss = joined(loss.terms, batch);
  has_own_normaliser_ = loss.normaliser.defined();
  // DDP averages over ranks; a step needs the sum over ranks.
  const double factor =
      batch.is_filler ? 0 : world_.size() / expected_normaliser();
  scaled_loss_ = loss.sum * factor;
  if (scaler_) scaled_loss_ = scaler_->scale(scaled_loss_);
  ddp_->after_forward({&scaled_loss_});

  at::Tensor row = loss_row(loss, batch);
  if (batch.is_filler) row.zero_();
  if (!step_sums_.defined()) {
    step_sums_ = torch::zeros_like(row);
    total_sums_ = torch::zeros_like(row);
  }
  step_sums_.add_(row);
}

void Learner::backward() {
  scaled_loss_.backward();
  scaled_loss_.reset();
}

std::optional<at::Tensor> Learner::correction() {
  std::optional<at::Tensor> inverse;
  if (scaler_) inverse = scaler_->inverse_scale();
  if (!has_own_normaliser_) return inverse;
  at::Tensor total = step_sums_[-1].clone();
  world_.all_reduce(total);
  // A step with normaliser 0 has no gradient.
  const at::Tensor factor =
      torch::where(total > 0, expected_normaliser() / total,
                   torch::zeros_like(total))
          .to(config_.precision.dtype);
  return inverse ? *inverse * factor : factor;
}

void Learner::restart_averages() {
  for (Ema& average : averages_) {
    average.load({.averages = average.parameters(), .num_updates = 0});
  }
}

void Learner::weights_were_set() {
  if (working_weights_) working_weights_->mark_changed();
}

std::vector<parallel::NamedTensor> Learner::replicated_tensors() const {
  if (sharded_update_) return {};
  std::vector<parallel::NamedTensor> tensors;
  const auto names = parameter_names();
  tensors.reserve(parameters_.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    tensors.push_back({.name = names[i], .tensor = parameters_[i]});
  }
  const OptimizerState state = optimizer_->state();
  for (size_t i = 0; i < state.parameters.size(); ++i) {
    for (const auto& [name, tensor] : state.parameters[i]) {
      tensors.push_back({.name = name + " of " + names[i], .tensor = tensor});
    }
  }
  for (const Ema& average : averages_) {
    for (size_t i = 0; i < average.averages().size(); ++i) {
      tensors.push_back({.name = "the average of " + names[i],
                         .tensor = average.averages()[i]});
    }
  }
  if (scaler_) {
    const optim::GradScalerState scaling = scaler_->state();
    tensors.push_back({.name = "the loss scale", .tensor = scaling.scale});
    tensors.push_back({.name = "the steps since it changed",
                       .tensor = scaling.growth_tracker});
  }
  return tensors;
}

void Learner::begin_step(double lr) {
  if (product_choice_ && has_updated_) product_choice_->share();
  has_updated_ = false;
  has_sums_ = true;
  if (working_weights_) working_weights_->refresh();
  is_update_fused_ = fused_update_->fits();
  if (is_update_fused_) {
    fused_update_->begin_step(lr);
  } else {
    optimizer_->set_lr(lr);
  }
}

optim::GradientReport Learner::run_update() {
  const auto factor = correction();
  if (is_update_fused_) return fused_update_->run(factor);
  if (sharded_update_) return sharded_update_->run(factor);
  return update_by_parts(factor);
}

void Learner::update() {
  const optim::GradientReport report = run_update();
  has_updated_ = true;
  if (scaler_) scaler_->update(report.found_inf);
  gradient_norm_.copy_(report.norm);
  count_step(report.found_inf);
}

optim::GradientReport Learner::update_by_parts(
    const std::optional<at::Tensor>& factor) {
  const optim::GradientReport report = optim::prepare_gradients(
      parameters_, factor, config_.optimization.max_grad_norm);
  optimizer_->step_and_clear(report.found_inf);
  has_updated_ = true;
  if (working_weights_) working_weights_->mark_changed();
  for (Ema& average : averages_) average.update();
  return report;
}

void Learner::abandon_step() {
  scaled_loss_.reset();
  optimizer_->clear_gradients();
  ddp_->abandon_step();
  if (step_sums_.defined()) step_sums_.zero_();
}

// The loss of a skipped step is not counted.
void Learner::count_step(const at::Tensor& found_inf) {
  skipped_.add_(found_inf);
  skipped_in_a_row_.add_(1).mul_(found_inf);
  step_sums_.masked_fill_(found_inf.to(at::kBool), 0);
  total_sums_.add_(step_sums_);
  step_sums_.zero_();
}

Progress Learner::take_progress() {
  const auto columns = static_cast<int64_t>(part_names_.size()) + 2;
  at::Tensor sums =
      total_sums_.defined()
          ? total_sums_.clone()
          : torch::zeros({columns}, skipped_.options().dtype(at::kDouble));
  world_.all_reduce(sums);
  const at::Tensor scale =
      scaler_ ? scaler_->scale_tensor() : torch::ones_like(skipped_);
  // One device-to-host copy for everything.
  const at::Tensor values =
      torch::cat({sums, torch::stack({gradient_norm_, skipped_,
                                      skipped_in_a_row_, scale})
                            .to(at::kDouble)})
          .to(at::kCPU);
  const auto* value = values.const_data_ptr<double>();
  const double weight = value[columns - 1];
  Progress progress{.loss = value[0] / weight, .loss_weight = weight};
  for (size_t i = 0; i < part_names_.size(); ++i) {
    progress.parts.emplace_back(part_names_[i], value[i + 1] / weight);
  }
  progress.gradient_norm = value[columns];
  progress.skipped_steps = static_cast<int64_t>(value[columns + 1]);
  progress.skipped_in_a_row = static_cast<int64_t>(value[columns + 2]);
  progress.loss_scale = value[columns + 3];
  skipped_.zero_();
  if (total_sums_.defined()) total_sums_.zero_();
  has_sums_ = false;
  return progress;
}

std::optional<double> Learner::own_loss() const {
  if (!has_sums_) return std::nullopt;
  const at::Tensor sums = total_sums_.to(at::kCPU);
  return sums[0].item<double>() / sums[-1].item<double>();
}

at::Tensor Learner::running_sums() const {
  const at::Tensor skipped =
      torch::stack({skipped_, skipped_in_a_row_}).to(at::kDouble);
  return has_sums_ ? torch::cat({total_sums_, skipped}) : skipped;
}

at::Tensor Learner::running_sums_after(Outcome outcome) const {
  const bool is_skipped = outcome == Outcome::kSkipped;
  const at::Tensor sums = is_skipped ? total_sums_ : total_sums_ + step_sums_;
  const at::Tensor in_a_row =
      is_skipped ? skipped_in_a_row_ + 1 : torch::zeros_like(skipped_in_a_row_);
  const at::Tensor skipped = is_skipped ? skipped_ + 1 : skipped_;
  return torch::cat({sums, torch::stack({skipped, in_a_row}).to(at::kDouble)});
}

LastStep Learner::last_step() const {
  return {.is_skipped = skipped_in_a_row_.item<float>() > 0,
          .gradient_norm = gradient_norm_.item<float>()};
}

void Learner::set_last_step(const LastStep& step) {
  gradient_norm_.fill_(step.gradient_norm);
}

void Learner::set_running_sums(const at::Tensor& sums) {
  const at::Tensor own = sums.to(world_.device());
  const int64_t columns = own.size(0) - 2;
  has_sums_ = columns > 0;
  if (has_sums_) {
    total_sums_ = own.slice(0, 0, columns).clone();
    step_sums_ = torch::zeros_like(total_sums_);
  }
  skipped_.copy_(own[columns]);
  skipped_in_a_row_.copy_(own[columns + 1]);
}

struct Learner::Inference::Guards {
  torch::NoGradGuard no_grad;
  tensor::Autocast autocast;
};

Learner::Inference::Inference(Learner& learner)
    : learner_(learner),
      guards_(new Guards{
          .no_grad = {},
          .autocast = tensor::Autocast(learner.world_.device().type(),
                                       learner.config_.precision.autocast)}) {
  learner_.model_->eval();
  // Running statistics differ between ranks since the last forward; rank 0's
  // are saved and evaluated.
  for (at::Tensor& buffer : learner_.model_->buffers()) {
    learner_.world_.broadcast(buffer);
  }
}

Learner::Inference::~Inference() {
  optim::train_except_frozen(*learner_.model_);
}

}  // namespace lockstep::engine
