// The kernels of optim/fused_update.cpp; part of liblockstep_cuda. No torch
// header: this file compiles in seconds.
//
// Gradients are read twice, everything else once: sums of squares per chunk,
// their sum in a fixed order, then clipping, optimizer and averages together.
#include "lockstep/export.h"
#include "lockstep/kernels/element.cuh"
#include "lockstep/kernels/optimizer_step_request.h"
#include "lockstep/kernels/vector.cuh"
#include "lockstep/kernels/warp.cuh"

namespace {

using namespace lockstep::kernels;  // NOLINT: everything here is a kernel's.

constexpr int kThreads = 256;
constexpr int kFinishThreads = 1024;
constexpr int kVector = 4;

struct Chunk {
  const OptimizerTensor& tensor;
  int64_t begin;
  int64_t end;
};

__device__ Chunk chunk_of_block(const OptimizerTable& table) {
  int low = 0;
  int high = table.num_tensors - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (table.first_chunk[middle] <= blockIdx.x) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const OptimizerTensor& tensor = table.tensors[low];
  const int64_t begin =
      int64_t{blockIdx.x - table.first_chunk[low]} * kOptimizerChunk;
  return {tensor, begin, min(begin + kOptimizerChunk, tensor.count)};
}

// Calls body(offset, count) for runs of at most kVector elements.
template <typename Body>
__device__ void for_each_vector(const Chunk& chunk, Body body) {
  for (int64_t i = chunk.begin + int64_t{threadIdx.x} * kVector; i < chunk.end;
       i += int64_t{kThreads} * kVector) {
    body(i, static_cast<int>(min(int64_t{kVector}, chunk.end - i)));
  }
}

__device__ void load(float (&values)[kVector], const float* from,
                     int64_t offset, int count, bool is_aligned) {
  if (is_aligned && count == kVector) {
    load_pack(values, from + offset);
    return;
  }
  for (int k = 0; k < count; ++k) values[k] = from[offset + k];
}

template <typename T>
__device__ void store(T* to, const float (&values)[kVector], int64_t offset,
                      int count, bool is_aligned) {
  if (is_aligned && count == kVector) {
    store_pack(to + offset, values);
    return;
  }
  for (int k = 0; k < count; ++k) to[offset + k] = static_cast<T>(values[k]);
}

__global__ void set_scalars(StepScalars values, StepScalars* scalars) {
  *scalars = values;
}

__global__ void __launch_bounds__(kThreads)
    sum_squares(const __grid_constant__ OptimizerTable table,
                const float* factor, double* partials) {
  __shared__ float sums[kThreads / kWarp];
  const Chunk chunk = chunk_of_block(table);
  const float scale = factor == nullptr ? 1 : *factor;
  float sum = 0;
  if (chunk.tensor.gradient != nullptr) {
    for_each_vector(chunk, [&](int64_t offset, int count) {
      float gradient[kVector] = {};
      load(gradient, chunk.tensor.gradient, offset, count,
           chunk.tensor.is_aligned);
      for (const float value : gradient)
        sum += (value * scale) * (value * scale);
    });
  }
  sum = sum_of_warp(sum);
  if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  double total = 0;
  for (const float part : sums) total += part;
  partials[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kFinishThreads)
    finish_norm(FinishNormRequest request) {
  __shared__ double sums[kFinishThreads];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < request.num_partials; i += kFinishThreads) {
    sum += request.partials[i];
  }
  sums[threadIdx.x] = sum;
  for (int half = kFinishThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  const auto norm = static_cast<float>(sqrt(sums[0]));
  GradientSummary& summary = *request.summary;
  summary.norm = norm;
  summary.found_inf = isfinite(norm) ? 0 : 1;
  // As clip_grad_norm_.
  summary.clip = request.max_norm > 0
                     ? fminf((1.0f / (norm + 1e-6f)) * request.max_norm, 1.0f)
                     : 1.0f;
}

// Adam's counters, which all chunks of a tensor read afterwards.
__global__ void __launch_bounds__(kMaxOptimizerTensors)
    count_steps(const __grid_constant__ OptimizerTable table,
                const GradientSummary* summary) {
  if (threadIdx.x >= table.num_tensors || summary->found_inf != 0) return;
  const OptimizerTensor& tensor = table.tensors[threadIdx.x];
  if (tensor.gradient != nullptr) *tensor.step += 1;
}

struct Settings {
  OptimizerStepRequest request;
  float lr;
  float weight_decay;
  float bias_correction1;
  float bias_correction2_sqrt;
};

// The order of operations is that of libtorch's fused kernels.
template <OptimizerKind kKind>
__device__ void step_element(const Settings& s, float& parameter,
                             float gradient, float& first, float& second) {
  if (s.weight_decay != 0) {
    if constexpr (kKind == OptimizerKind::kAdamW) {
      parameter -= s.lr * s.weight_decay * parameter;
    } else {
      gradient += parameter * s.weight_decay;
    }
  }
  const OptimizerStepRequest& r = s.request;
  if constexpr (kKind == OptimizerKind::kSgd) {
    if (r.momentum != 0) {
      first = r.momentum * first + (1 - r.dampening) * gradient;
      gradient = r.nesterov ? gradient + r.momentum * first : first;
    }
    parameter -= s.lr * gradient;
  } else {
    first = fmaf(r.beta1, first, fmaf(-r.beta1, gradient, gradient));
    second = fmaf(r.beta2, second,
                  fmaf(-r.beta2, gradient * gradient, gradient * gradient));
    const float step_size = s.lr / s.bias_correction1;
    const float denominator = sqrtf(second) / s.bias_correction2_sqrt + r.eps;
    parameter -= step_size * first / denominator;
  }
}

// As at::lerp.
__device__ float lerp(float from, float to, float weight) {
  return fabsf(weight) < 0.5f ? from + weight * (to - from)
                              : to - (to - from) * (1 - weight);
}

template <OptimizerKind kKind>
__device__ Settings settings_of(const OptimizerStepRequest& request,
                                const OptimizerTensor& tensor) {
  Settings settings{request, request.scalars->lr[tensor.group],
                    request.weight_decay[tensor.group], 1, 1};
  if constexpr (kKind != OptimizerKind::kSgd) {
    const float step = *tensor.step;
    settings.bias_correction1 = 1 - powf(request.beta1, step);
    settings.bias_correction2_sqrt = sqrtf(1 - powf(request.beta2, step));
  }
  return settings;
}

template <OptimizerKind kKind, typename Working>
__global__ void __launch_bounds__(kThreads)
    optimizer_step(const __grid_constant__ OptimizerTable table,
                   const __grid_constant__ OptimizerStepRequest request) {
  const Chunk chunk = chunk_of_block(table);
  const OptimizerTensor& tensor = chunk.tensor;
  const Settings settings = settings_of<kKind>(request, tensor);
  const bool is_skipped =
      request.summary->found_inf != 0 || tensor.gradient == nullptr;
  const float scale = request.factor == nullptr ? 1 : *request.factor;
  const float clip = request.summary->clip;
  for_each_vector(chunk, [&](int64_t offset, int count) {
    const auto read = [&](float(&values)[kVector], const float* from) {
      if (from != nullptr) load(values, from, offset, count, tensor.is_aligned);
    };
    const auto write = [&](auto* to, const float(&values)[kVector]) {
      if (to != nullptr) store(to, values, offset, count, tensor.is_aligned);
    };
    float parameter[kVector] = {};
    read(parameter, tensor.parameter);
    if (!is_skipped) {
      float gradient[kVector] = {}, first[kVector] = {}, second[kVector] = {};
      read(gradient, tensor.gradient);
      read(first, tensor.first);
      read(second, tensor.second);
      for (int k = 0; k < kVector; ++k) {
        float value = gradient[k];
        if (request.factor != nullptr) value *= scale;
        if (request.clips) value *= clip;
        step_element<kKind>(settings, parameter[k], value, first[k], second[k]);
      }
      write(tensor.parameter, parameter);
      write(tensor.first, first);
      write(tensor.second, second);
      write(static_cast<Working*>(tensor.working), parameter);
    }
    for (int a = 0; a < kMaxAverages; ++a) {
      if (tensor.averages[a] == nullptr) continue;
      float average[kVector] = {};
      read(average, tensor.averages[a]);
      for (int k = 0; k < kVector; ++k) {
        average[k] =
            lerp(average[k], parameter[k], request.scalars->average_weights[a]);
      }
      write(tensor.averages[a], average);
    }
  });
}

unsigned num_chunks(const OptimizerTable& table) {
  return table.first_chunk[table.num_tensors];
}

template <OptimizerKind kKind>
void launch_step(const OptimizerStepRequest& request, cudaStream_t stream) {
  if constexpr (kKind != OptimizerKind::kSgd) {
    count_steps<<<1, kMaxOptimizerTensors, 0, stream>>>(*request.table,
                                                        request.summary);
  }
  with_element(request.working_type, [&](auto* element) {
    using Working = std::remove_pointer_t<decltype(element)>;
    optimizer_step<kKind, Working>
        <<<num_chunks(*request.table), kThreads, 0, stream>>>(*request.table,
                                                              request);
  });
}

}  // namespace

// Each launches on a stream of the current device.
extern "C" {

LOCKSTEP_EXPORT void lockstep_cuda_set_step_scalars(
    const SetStepScalarsRequest* request, void* stream) {
  set_scalars<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(request->values,
                                                              request->scalars);
  check_launch("set_step_scalars");
}

LOCKSTEP_EXPORT void lockstep_cuda_sum_squares(const SumSquaresRequest* request,
                                               void* stream) {
  sum_squares<<<num_chunks(*request->table), kThreads, 0,
                static_cast<cudaStream_t>(stream)>>>(
      *request->table, request->factor, request->partials);
  check_launch("sum_squares");
}

LOCKSTEP_EXPORT void lockstep_cuda_finish_norm(const FinishNormRequest* request,
                                               void* stream) {
  finish_norm<<<1, kFinishThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      *request);
  check_launch("finish_norm");
}

LOCKSTEP_EXPORT void lockstep_cuda_optimizer_step(
    const OptimizerStepRequest* request, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  switch (request->kind) {
    case OptimizerKind::kAdamW:
      launch_step<OptimizerKind::kAdamW>(*request, on);
      break;
    case OptimizerKind::kAdam:
      launch_step<OptimizerKind::kAdam>(*request, on);
      break;
    case OptimizerKind::kSgd:
      launch_step<OptimizerKind::kSgd>(*request, on);
      break;
  }
  check_launch("optimizer_step");
}

}  // extern "C"
