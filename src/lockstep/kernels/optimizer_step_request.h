// What optimizer_step.cu takes. No torch header.
#pragma once

#include <cstdint>

#include "lockstep/kernels/element_type.h"

namespace lockstep::kernels {

enum class OptimizerKind { kAdamW, kAdam, kSgd };

constexpr int kMaxAverages = 2;
constexpr int kMaxGroups = 16;
// A launch's arguments hold the table of tensors: it needs no memory on the
// device, and a CUDA graph keeps it.
constexpr int kMaxOptimizerTensors = 320;
constexpr int64_t kOptimizerChunk = 16384;

// All float32 and laid out alike; null where there is none.
struct OptimizerTensor {
  float* parameter = nullptr;
  const float* gradient = nullptr;  // Null: only its averages move.
  float* first = nullptr;           // exp_avg, or SGD's momentum.
  float* second = nullptr;          // exp_avg_sq.
  float* step = nullptr;            // Counter of Adam's steps.
  float* averages[kMaxAverages] = {};
  void* working = nullptr;  // Its copy in half precision.
  int64_t count = 0;
  int32_t group = 0;
  bool is_aligned = false;  // Every pointer, for loads of 16 bytes.
};

struct OptimizerTable {
  OptimizerTensor tensors[kMaxOptimizerTensors] = {};
  uint32_t first_chunk[kMaxOptimizerTensors + 1] = {};
  int32_t num_tensors = 0;
};

// On the device; differ from step to step.
struct StepScalars {
  float lr[kMaxGroups] = {};
  float average_weights[kMaxAverages] = {};
};

// On the device.
struct GradientSummary {
  float norm = 0;
  float found_inf = 0;
  float clip = 1;
};

struct SetStepScalarsRequest {
  StepScalars values = {};
  StepScalars* scalars = nullptr;
};

struct SumSquaresRequest {
  const OptimizerTable* table = nullptr;  // On the host.
  const float* factor = nullptr;          // Multiplies gradients; null: 1.
  double* partials = nullptr;             // One per chunk.
};

struct FinishNormRequest {
  const double* partials = nullptr;
  int64_t num_partials = 0;
  float max_norm = 0;  // 0: no clipping.
  GradientSummary* summary = nullptr;
};

struct OptimizerStepRequest {
  const OptimizerTable* table = nullptr;  // On the host.
  const float* factor = nullptr;
  const StepScalars* scalars = nullptr;
  const GradientSummary* summary = nullptr;
  OptimizerKind kind = OptimizerKind::kAdamW;
  bool clips = false;
  ElementType working_type = ElementType::kBfloat16;
  float weight_decay[kMaxGroups] = {};
  float beta1 = 0;
  float beta2 = 0;
  float eps = 0;
  float momentum = 0;
  float dampening = 0;
  bool nesterov = false;
};

}  // namespace lockstep::kernels
