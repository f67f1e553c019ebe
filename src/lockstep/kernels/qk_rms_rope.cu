// The CUDA side of qk_rms_rope.cpp; part of liblockstep_cuda. No torch header:
// this file compiles in seconds.
#include "lockstep/export.h"
#include "lockstep/kernels/column_sums.cuh"
#include "lockstep/kernels/qk_rms_rope_request.h"

namespace {

using namespace lockstep::kernels;  // NOLINT: everything here is a kernel's.

constexpr int kThreads = 256;
constexpr int kChannels = kQkRmsChannelsPerThread;

// One head of a token; its threads are neighbours in a warp.
struct HeadRow {
  unsigned token_of_all = 0;
  unsigned head = 0;
  unsigned sample = 0;
  unsigned token = 0;

  // 32 bits: a division of 64 takes longer than the rest of a kernel.
  __device__ HeadRow(unsigned row, const QkRmsArguments& arguments)
      : token_of_all(row / static_cast<unsigned>(arguments.num_heads)),
        head(row % static_cast<unsigned>(arguments.num_heads)),
        sample(token_of_all / static_cast<unsigned>(arguments.num_tokens)),
        token(token_of_all % static_cast<unsigned>(arguments.num_tokens)) {}

  // In qkv; which: 0 queries, 1 keys, 2 values.
  __device__ int64_t packed(const QkRmsArguments& arguments, int which) const {
    return ((int64_t{token_of_all} * 3 + which) * arguments.num_heads + head) *
           arguments.size;
  }
  __device__ int64_t of_rstd(const QkRmsArguments& arguments, int which) const {
    return (int64_t{token_of_all} * 2 + which) * arguments.num_heads + head;
  }
  __device__ int64_t at(const HeadStrides& strides) const {
    return sample * strides.sample + token * strides.token +
           head * strides.head;
  }
};

__device__ float sum_of_head(float value, int num_threads) {
  for (int offset = num_threads / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

// An array's element without an array of the kernel's arguments in memory.
template <typename Value>
__device__ Value pick(const Value (&values)[2], int which) {
  return which == 0 ? values[0] : values[1];
}

template <typename T>
__global__ void qk_rms_rope(QkRmsRopeRequest request) {
  const QkRmsArguments& arguments = request.arguments;
  const int which = blockIdx.y;
  const int threads_per_head = arguments.size / kChannels;
  const int channel = threadIdx.x % threads_per_head * kChannels;
  const int64_t rows =
      arguments.num_samples * arguments.num_tokens * arguments.num_heads;
  const int64_t row = int64_t{blockIdx.x} * (kThreads / threads_per_head) +
                      threadIdx.x / threads_per_head;
  const bool is_row = row < rows;
  const HeadRow head(is_row ? static_cast<unsigned>(row) : 0, arguments);
  float x[kChannels];
  load_pack(x, static_cast<const T*>(arguments.qkv) +
                   head.packed(arguments, which) + channel);
  float squares = 0;
  for (const float value : x) squares += value * value;
  squares = sum_of_head(squares, threads_per_head);
  const float rstd = rsqrtf(squares / static_cast<float>(arguments.size) +
                            pick(arguments.eps, which));
  if (!is_row) return;
  if (channel == 0) request.rstd[head.of_rstd(arguments, which)] = rstd;
  float weight[kChannels], angle[kChannels];
  load_pack(weight, pick(arguments.weight, which) + channel);
  load_pack(angle, arguments.rope + head.token * arguments.size + channel);
  for (int i = 0; i < kChannels; i += 2) {
    const float a = x[i] * rstd * weight[i];
    const float b = x[i + 1] * rstd * weight[i + 1];
    x[i] = a * angle[i] - b * angle[i + 1];
    x[i + 1] = a * angle[i + 1] + b * angle[i];
  }
  store_pack(static_cast<T*>(pick(request.out, which)) + row * arguments.size +
                 channel,
             x);
}

// Gradients of a thread's channels.
struct ChannelSums {
  float weight[kChannels] = {};
  float bias[kChannels] = {};
};

template <typename T>
__device__ void copy_values(const QkRmsRopeBackwardRequest& request,
                            const HeadRow& head, int channel,
                            ChannelSums& sums) {
  float d[kChannels];
  load_pack(d, static_cast<const T*>(request.d_out[2]) +
                   head.at(request.strides[2]) + channel);
  for (int i = 0; i < kChannels; ++i) sums.bias[i] += d[i];
  store_pack(static_cast<T*>(request.d_qkv) +
                 head.packed(request.arguments, 2) + channel,
             d);
}

template <typename T>
__device__ void backward_of_head(const QkRmsRopeBackwardRequest& request,
                                 const HeadRow& head, int which, int channel,
                                 bool is_row, ChannelSums& sums) {
  const QkRmsArguments& arguments = request.arguments;
  const int threads_per_head = arguments.size / kChannels;
  const HeadStrides& strides =
      which == 0 ? request.strides[0] : request.strides[1];
  const void* d_out = which == 0 ? request.d_out[0] : request.d_out[1];
  const float rstd = request.rstd[head.of_rstd(arguments, which)];
  float d[kChannels], x[kChannels], weight[kChannels], angle[kChannels];
  load_pack(d, static_cast<const T*>(d_out) + head.at(strides) + channel);
  load_pack(x, static_cast<const T*>(arguments.qkv) +
                   head.packed(arguments, which) + channel);
  load_pack(weight, pick(arguments.weight, which) + channel);
  load_pack(angle, arguments.rope + head.token * arguments.size + channel);
  float dot = 0;
  for (int i = 0; i < kChannels; i += 2) {
    const float a = d[i] * angle[i] + d[i + 1] * angle[i + 1];
    const float b = d[i + 1] * angle[i] - d[i] * angle[i + 1];
    d[i] = a;
    d[i + 1] = b;
  }
  for (int i = 0; i < kChannels; ++i) {
    x[i] *= rstd;
    if (is_row) sums.weight[i] += d[i] * x[i];
    d[i] *= weight[i];
    dot += d[i] * x[i];
  }
  dot = sum_of_head(dot, threads_per_head) / static_cast<float>(arguments.size);
  if (!is_row) return;
  for (int i = 0; i < kChannels; ++i) {
    d[i] = rstd * (d[i] - x[i] * dot);
    sums.bias[i] += d[i];
  }
  store_pack(
      static_cast<T*>(request.d_qkv) + head.packed(arguments, which) + channel,
      d);
}

// A head's sum over the places of the block that hold it, in their order.
__device__ void store_bias_sums(const QkRmsRopeBackwardRequest& request,
                                int which, const float* scratch,
                                int rows_per_pass) {
  const QkRmsArguments& arguments = request.arguments;
  const int num_heads = arguments.num_heads;
  const int width = num_heads * arguments.size;
  const int first_head =
      static_cast<int>(int64_t{blockIdx.x} * rows_per_pass % num_heads);
  float* out =
      request.partial_bias_sums + (int64_t{blockIdx.x} * 3 + which) * width;
  for (int i = threadIdx.x; i < width; i += kThreads) {
    const int head = i / arguments.size;
    const int channel = i % arguments.size;
    float total = 0;
    for (int place = (head - first_head + num_heads) % num_heads;
         place < rows_per_pass; place += num_heads) {
      total += scratch[place * arguments.size + channel];
    }
    out[i] = total;
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    qk_rms_rope_backward(QkRmsRopeBackwardRequest request) {
  __shared__ float scratch[kThreads * kChannels];
  const QkRmsArguments& arguments = request.arguments;
  const int which = blockIdx.y;
  const int threads_per_head = arguments.size / kChannels;
  const int rows_per_pass = kThreads / threads_per_head;
  const int channel = threadIdx.x % threads_per_head * kChannels;
  const int place = threadIdx.x / threads_per_head;
  const int64_t rows =
      arguments.num_samples * arguments.num_tokens * arguments.num_heads;
  ChannelSums sums;
  for (int64_t first = int64_t{blockIdx.x} * rows_per_pass; first < rows;
       first += int64_t{gridDim.x} * rows_per_pass) {
    const bool is_row = first + place < rows;
    const HeadRow head(is_row ? static_cast<unsigned>(first + place) : 0,
                       arguments);
    if (which < 2) {
      backward_of_head<T>(request, head, which, channel, is_row, sums);
    } else if (is_row) {
      copy_values<T>(request, head, channel, sums);
    }
  }
  if (request.d_bias != nullptr) {
    store_pack(scratch + place * arguments.size + channel, sums.bias);
    __syncthreads();
    store_bias_sums(request, which, scratch, rows_per_pass);
    __syncthreads();
  }
  if (which == 2) return;
  store_pack(scratch + place * arguments.size + channel, sums.weight);
  __syncthreads();
  float* out = request.partial_sums +
               (int64_t{which} * gridDim.x + blockIdx.x) * arguments.size;
  for (int i = threadIdx.x; i < arguments.size; i += kThreads) {
    float total = 0;
    for (int row = 0; row < rows_per_pass; ++row) {
      total += scratch[row * arguments.size + i];
    }
    out[i] = total;
  }
}

// One block per weight and channel adds the blocks' sums in a fixed order.
__global__ void finish_weights(QkRmsRopeBackwardRequest request,
                               int num_blocks) {
  __shared__ float scratch[kThreads];
  const int size = request.arguments.size;
  const int channel = blockIdx.x;
  const float* from =
      request.partial_sums + int64_t{blockIdx.y} * num_blocks * size + channel;
  float total = 0;
  for (int block = threadIdx.x; block < num_blocks; block += kThreads) {
    total += from[int64_t{block} * size];
  }
  scratch[threadIdx.x] = total;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      scratch[threadIdx.x] += scratch[threadIdx.x + half];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0)
    pick(request.d_weight, blockIdx.y)[channel] = scratch[0];
}

int64_t num_rows(const QkRmsArguments& arguments) {
  return arguments.num_samples * arguments.num_tokens * arguments.num_heads;
}

}  // namespace

// Launch on a stream of the current device.
extern "C" LOCKSTEP_EXPORT void lockstep_cuda_qk_rms_rope(
    const QkRmsRopeRequest* request, void* stream) {
  const QkRmsArguments& arguments = request->arguments;
  const int64_t count = num_rows(arguments) * (arguments.size / kChannels);
  const dim3 grid(static_cast<unsigned>((count + kThreads - 1) / kThreads), 2);
  with_element(arguments.type, [&](auto* element) {
    qk_rms_rope<std::remove_pointer_t<decltype(element)>>
        <<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(*request);
  });
  check_launch("qk_rms_rope");
}

extern "C" LOCKSTEP_EXPORT void lockstep_cuda_qk_rms_rope_backward(
    const QkRmsRopeBackwardRequest* request, void* stream) {
  const QkRmsArguments& arguments = request->arguments;
  const auto queue = static_cast<cudaStream_t>(stream);
  const auto blocks = static_cast<unsigned>(qk_rms_blocks(
      arguments.num_samples * arguments.num_tokens, arguments.num_heads));
  with_element(arguments.type, [&](auto* element) {
    qk_rms_rope_backward<std::remove_pointer_t<decltype(element)>>
        <<<dim3(blocks, 3), kThreads, 0, queue>>>(*request);
  });
  finish_weights<<<dim3(static_cast<unsigned>(arguments.size), 2), kThreads, 0,
                   queue>>>(*request, static_cast<int>(blocks));
  check_launch("qk_rms_rope_backward");
  if (request->d_bias == nullptr) return;
  add_column_sums(request->partial_bias_sums, request->d_bias,
                  int64_t{3} * arguments.num_heads * arguments.size, blocks,
                  queue);
}
