#include "lockstep/optim/fused_update.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "lockstep/kernels/cuda_call.h"
#include "lockstep/kernels/optimizer_step_request.h"
#include "lockstep/optim/gradient_layout.h"

namespace lockstep::optim {
namespace {

using kernels::OptimizerKind;
using kernels::OptimizerTable;
using kernels::OptimizerTensor;

template <typename T>
at::Tensor memory_for(c10::Device device) {
  static_assert(sizeof(T) % sizeof(float) == 0);
  return at::zeros({sizeof(T) / sizeof(float)},
                   at::TensorOptions().device(device).dtype(at::kFloat));
}

template <typename T>
T* as(const at::Tensor& memory) {
  return static_cast<T*>(memory.mutable_data_ptr());
}

float* data(const at::Tensor& tensor) {
  return kernels::mutable_data_or_null<float>(tensor);
}

bool is_aligned(const void* pointer) {
  constexpr uintptr_t kAlignment = 16;
  return reinterpret_cast<uintptr_t>(pointer) % kAlignment == 0;
}

bool is_aligned(const OptimizerTensor& tensor) {
  return is_aligned(tensor.parameter) && is_aligned(tensor.gradient) &&
         is_aligned(tensor.first) && is_aligned(tensor.second) &&
         is_aligned(tensor.working) &&
         std::ranges::all_of(tensor.averages,
                             [](const float* x) { return is_aligned(x); });
}

void append(std::vector<OptimizerTable>& tables, OptimizerTensor tensor) {
  if (tables.empty() ||
      tables.back().num_tensors == kernels::kMaxOptimizerTensors) {
    tables.emplace_back();
  }
  OptimizerTable& table = tables.back();
  tensor.is_aligned = is_aligned(tensor);
  const int32_t place = table.num_tensors++;
  table.tensors[place] = tensor;
  const int64_t chunks =
      (tensor.count + kernels::kOptimizerChunk - 1) / kernels::kOptimizerChunk;
  table.first_chunk[place + 1] =
      table.first_chunk[place] + static_cast<uint32_t>(chunks);
}

int64_t num_chunks(const OptimizerTable& table) {
  return table.first_chunk[table.num_tensors];
}

OptimizerKind kind_of(const Optimizer& optimizer) {
  if (optimizer.kind() == "adamw") return OptimizerKind::kAdamW;
  if (optimizer.kind() == "adam") return OptimizerKind::kAdam;
  return OptimizerKind::kSgd;
}

float value_or_zero(const std::map<std::string, double>& settings,
                    const char* name) {
  const auto at = settings.find(name);
  return at == settings.end() ? 0 : static_cast<float>(at->second);
}

const float* data_of(const std::optional<at::Tensor>& factor) {
  return factor ? factor->const_data_ptr<float>() : nullptr;
}

}  // namespace

FusedUpdate::FusedUpdate(Optimizer& optimizer, std::vector<Ema>& averages,
                         double max_norm,
                         const kernels::WorkingWeights* working)
    : optimizer_(optimizer),
      averages_(averages),
      max_norm_(max_norm),
      working_(working) {}

bool FusedUpdate::fits(const at::Tensor& parameter) const {
  return parameter.is_cuda() && parameter.scalar_type() == at::kFloat &&
         parameter.device() ==
             optimizer_.members_.front().front().parameter.device();
}

bool FusedUpdate::fits() const {
  if (averages_.size() > kernels::kMaxAverages ||
      optimizer_.groups().size() > kernels::kMaxGroups ||
      optimizer_.members_.front().empty()) {
    return false;
  }
  const bool has_state = !optimizer_.state_names_.empty();
  for (const auto& members : optimizer_.members_) {
    for (const Optimizer::Member& member : members) {
      if (!fits(member.parameter)) return false;
      if (has_state && member.state.empty()) return false;
    }
  }
  return true;
}

void FusedUpdate::begin_step(double lr) {
  optimizer_.set_lr(lr);
  const c10::Device device =
      optimizer_.members_.front().front().parameter.device();
  if (!scalars_.defined()) {
    scalars_ = memory_for<kernels::StepScalars>(device);
    summary_ = memory_for<kernels::GradientSummary>(device);
  }
  kernels::SetStepScalarsRequest request{
      .scalars = as<kernels::StepScalars>(scalars_)};
  for (size_t i = 0; i < optimizer_.groups().size(); ++i) {
    request.values.lr[i] =
        static_cast<float>(lr * optimizer_.groups()[i].lr_scale);
  }
  for (size_t i = 0; i < averages_.size(); ++i) {
    request.values.average_weights[i] =
        static_cast<float>(averages_[i].count_update());
  }
  kernels::launch("lockstep_cuda_set_step_scalars", request, device);
}

FusedUpdate::Tables FusedUpdate::tables() {
  Tables tables;
  gradients_.clear();
  // Copies of a parameter, one per average.
  std::map<const c10::TensorImpl*, std::vector<at::Tensor>> averages;
  for (const Ema& average : averages_) {
    for (size_t i = 0; i < average.parameters().size(); ++i) {
      averages[average.parameters()[i].unsafeGetTensorImpl()].push_back(
          average.averages()[i]);
    }
  }
  for (size_t group = 0; group < optimizer_.members_.size(); ++group) {
    for (const Optimizer::Member& member : optimizer_.members_[group]) {
      const at::Tensor& parameter = member.parameter;
      const at::Tensor& gradient = parameter.grad();
      gradients_.push_back(gradient.defined() ? laid_out_as(parameter, gradient)
                                              : gradient);
      OptimizerTensor tensor{.parameter = data(parameter),
                             .gradient = data(gradients_.back()),
                             .count = parameter.numel(),
                             .group = static_cast<int32_t>(group)};
      if (member.state.size() == 3) {
        tensor.step = data(member.state[0]);
        tensor.first = data(member.state[1]);
        tensor.second = data(member.state[2]);
      } else if (member.state.size() == 1) {
        tensor.first = data(member.state[0]);
      }
      const auto& own = averages[parameter.unsafeGetTensorImpl()];
      for (size_t i = 0; i < own.size(); ++i) tensor.averages[i] = data(own[i]);
      if (working_ != nullptr) {
        tensor.working =
            kernels::mutable_data_or_null(working_->find(parameter));
      }
      append(tables, tensor);
    }
  }
  return tables;
}

void FusedUpdate::measure(const Tables& tables,
                          const std::optional<at::Tensor>& factor) {
  int64_t total = 0;
  for (const OptimizerTable& table : tables) total += num_chunks(table);
  if (!partials_.defined() || partials_.numel() < total) {
    partials_ = at::empty({total}, summary_.options().dtype(at::kDouble));
  }
  const c10::Device device = summary_.device();
  auto* partials = as<double>(partials_);
  for (const OptimizerTable& table : tables) {
    kernels::launch(
        "lockstep_cuda_sum_squares",
        kernels::SumSquaresRequest{
            .table = &table, .factor = data_of(factor), .partials = partials},
        device);
    partials += num_chunks(table);
  }
  kernels::launch("lockstep_cuda_finish_norm",
                  kernels::FinishNormRequest{
                      .partials = as<double>(partials_),
                      .num_partials = total,
                      .max_norm = static_cast<float>(max_norm_),
                      .summary = as<kernels::GradientSummary>(summary_)},
                  device);
}

void FusedUpdate::update(const Tables& tables,
                         const std::optional<at::Tensor>& factor) {
  const auto settings = optimizer_.settings();
  kernels::OptimizerStepRequest request{
      .factor = data_of(factor),
      .scalars = as<kernels::StepScalars>(scalars_),
      .summary = as<kernels::GradientSummary>(summary_),
      .kind = kind_of(optimizer_),
      .clips = max_norm_ > 0,
      .beta1 = value_or_zero(settings, "beta1"),
      .beta2 = value_or_zero(settings, "beta2"),
      .eps = value_or_zero(settings, "eps"),
      .momentum = value_or_zero(settings, "momentum"),
      .dampening = value_or_zero(settings, "dampening"),
      .nesterov = value_or_zero(settings, "nesterov") != 0};
  for (size_t i = 0; i < optimizer_.groups().size(); ++i) {
    request.weight_decay[i] = static_cast<float>(
        optimizer_.groups()[i].weight_decay.value_or(optimizer_.weight_decay_));
  }
  if (working_ != nullptr && working_->dtype() == at::kHalf) {
    request.working_type = kernels::ElementType::kFloat16;
  }
  for (const OptimizerTable& table : tables) {
    request.table = &table;
    kernels::launch("lockstep_cuda_optimizer_step", request, summary_.device());
  }
}

GradientReport FusedUpdate::run(const std::optional<at::Tensor>& factor) {
  const at::NoGradGuard no_grad;
  const Tables tables = this->tables();
  measure(tables, factor);
  update(tables, factor);
  optimizer_.clear_gradients();
  gradients_.clear();
  return {.norm = summary_[0], .found_inf = summary_[1]};
}

}  // namespace lockstep::optim
