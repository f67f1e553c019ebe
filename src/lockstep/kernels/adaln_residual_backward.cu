// The backward kernels of adaln_residual.cpp; part of liblockstep_cuda. No
// torch header: this file compiles in seconds.
//
// All sums are added in a fixed order: two launches give the same bits.
#include "lockstep/export.h"
#include "lockstep/kernels/adaln_residual.cuh"

namespace {

using namespace lockstep::kernels;  // NOLINT: everything here is a kernel's.

// Per channel, over the tokens of a sample.
enum Sum { kOfNormed, kOfNormedTimesHat, kOfSumTimesBranch, kOfSum };

// The block's sum of each thread's values over the rows that it saw, in the
// order of the rows' places.
template <typename Layout>
__device__ void store_column_sums(const float (&values)[kFours][4], int size,
                                  float* scratch, float* out) {
  __syncthreads();  // An earlier call reads scratch.
  for (int i = 0; i < kFours; ++i) {
    const int column = Layout::column(i);
    if (column >= size) continue;
    store_pack(scratch + Layout::row() * size + column, values[i]);
  }
  __syncthreads();
  for (int column = threadIdx.x; column < size; column += kAdaLnThreads) {
    float total = 0;
    for (int row = 0; row < Layout::kRowsPerBlock; ++row) {
      total += scratch[row * size + column];
    }
    out[column] = total;
  }
}

// A thread's part of a row.
template <typename T>
struct Row {
  // Loaded before the sums over the row, which wait for other threads.
  Pack<float, 4> d_sum[kFours];
  Pack<T, 4> branch[kFours];
  // The normalised values, and their gradient.
  float hat[kFours][4];
  float d_hat[kFours][4];
};

using ColumnSums = float[kAdaLnSums][kFours][4];

template <typename T, typename Layout>
__device__ void load_row(const AdaLnBackwardRequest& request, int64_t row,
                         int64_t sample, Row<T>& out, ColumnSums& sums) {
  const AdaLnArguments& arguments = request.arguments;
  const int size = static_cast<int>(arguments.size);
  const T* scale = row_of<T>(arguments.scale, sample);
  const float rstd = request.rstd[row];
  const float mean = request.mean == nullptr ? 0 : request.mean[row];
  for (int i = 0; i < kFours; ++i) {
    const int column = Layout::column(i);
    if (column >= size) continue;
    const int64_t offset = row * size + column;
    float d_normed[4], weight[4], gain[4];
    load_pack(d_normed, static_cast<const T*>(request.d_normed) + offset);
    load_pack(out.hat[i], request.sum + offset);
    out.d_sum[i] = load_raw_or_zero<4>(request.d_sum, offset);
    out.branch[i] =
        load_raw_or_zero<4>(static_cast<const T*>(arguments.branch), offset);
    load_weight(weight, arguments, column);
    load_or(gain, scale, column, 0);
    for (int k = 0; k < 4; ++k) {
      out.hat[i][k] = (out.hat[i][k] - mean) * rstd;
      out.d_hat[i][k] = d_normed[k] * (1 + gain[k]) * weight[k];
      sums[kOfNormed][i][k] += d_normed[k];
      sums[kOfNormedTimesHat][i][k] += d_normed[k] * out.hat[i][k];
    }
  }
}

// dot and average: means over the row of d_hat * hat and of d_hat.
template <typename T, typename Layout>
__device__ void store_row(const AdaLnBackwardRequest& request, int64_t row,
                          int64_t sample, const Row<T>& in, float dot,
                          float average, ColumnSums& sums) {
  const AdaLnArguments& arguments = request.arguments;
  const int size = static_cast<int>(arguments.size);
  const T* gate = row_of<T>(arguments.gate, sample);
  const float rstd = request.rstd[row];
  for (int i = 0; i < kFours; ++i) {
    const int column = Layout::column(i);
    if (column >= size) continue;
    const int64_t offset = row * size + column;
    float d[4];
    for (int k = 0; k < 4; ++k) {
      d[k] = in.d_sum[i].v[k] +
             rstd * (in.d_hat[i][k] - in.hat[i][k] * dot - average);
    }
    store_pack(request.d_x + offset, d);
    if (arguments.branch == nullptr) continue;
    float bias[4], gain[4];
    load_or(bias, arguments.branch_bias, column, 0);
    load_or(gain, gate, column, 1);
    for (int k = 0; k < 4; ++k) {
      const float value = static_cast<float>(in.branch[i].v[k]) + bias[k];
      sums[kOfSumTimesBranch][i][k] += d[k] * value;
      sums[kOfSum][i][k] += d[k];
      gain[k] *= d[k];
    }
    store_pack(static_cast<T*>(request.d_branch) + offset, gain);
  }
}

template <typename T, typename Layout>
__global__ void __launch_bounds__(kAdaLnThreads, 2)
    adaln_residual_backward(AdaLnBackwardRequest request, int rows_per_block) {
  extern __shared__ float scratch[];
  __shared__ float of_rows[2][2][kAdaLnWarps];
  const AdaLnArguments& arguments = request.arguments;
  const int size = static_cast<int>(arguments.size);
  const int64_t sample = blockIdx.y;
  const float inverse_size = 1.0f / static_cast<float>(size);

  ColumnSums sums = {};
  const int begin = blockIdx.x * rows_per_block;
  const int end =
      min(begin + rows_per_block, static_cast<int>(arguments.count));
  int parity = 0;  // A call of sum() while others still read the last result.
  for (int first = begin; first < end; first += Layout::kRowsPerBlock) {
    const int place = first + Layout::row();
    const bool is_row = place < end;
    const int64_t row = sample * arguments.count + place;
    Row<T> part = {};
    if (is_row) load_row<T, Layout>(request, row, sample, part, sums);
    float dot = 0;
    float total = 0;
    for (int i = 0; i < kFours; ++i) {
      for (int k = 0; k < 4; ++k) {
        dot += part.d_hat[i][k] * part.hat[i][k];
        total += part.d_hat[i][k];
      }
    }
    dot = Layout::sum(dot, of_rows[parity][0]) * inverse_size;
    const float average =
        arguments.kind == NormKind::kRms
            ? 0
            : Layout::sum(total, of_rows[parity][1]) * inverse_size;
    parity ^= 1;
    if (is_row) {
      store_row<T, Layout>(request, row, sample, part, dot, average, sums);
    }
  }

  float* out = request.partial_sums +
               (sample * gridDim.x + blockIdx.x) * kAdaLnSums * size;
  store_column_sums<Layout>(sums[0], size, scratch, out);
  store_column_sums<Layout>(sums[1], size, scratch, out + size);
  if (arguments.branch == nullptr) return;
  store_column_sums<Layout>(sums[2], size, scratch, out + 2 * size);
  store_column_sums<Layout>(sums[3], size, scratch, out + 3 * size);
}

template <typename T>
__device__ void store_if(void* rows, int64_t index, float value) {
  if (rows != nullptr) static_cast<T*>(rows)[index] = static_cast<T>(value);
}

constexpr int kColumnThreads = 128;

// Turns the sums of a sample's blocks into its gradients, and leaves its share
// of the parameters' gradients in their place.
template <typename T>
__global__ void finish_samples(AdaLnBackwardRequest request, int num_blocks) {
  const AdaLnArguments& arguments = request.arguments;
  const int size = static_cast<int>(arguments.size);
  const int column = blockIdx.x * kColumnThreads + threadIdx.x;
  if (column >= size) return;
  const int64_t sample = blockIdx.y;
  float* partial =
      request.partial_sums + sample * num_blocks * kAdaLnSums * size + column;
  float sums[kAdaLnSums] = {};
  for (int block = 0; block < num_blocks; ++block) {
    for (int i = 0; i < kAdaLnSums; ++i) {
      if (i < 2 || arguments.branch != nullptr) {
        sums[i] += partial[(block * kAdaLnSums + i) * size];
      }
    }
  }
  const T* scale = row_of<T>(arguments.scale, sample);
  const T* gate = row_of<T>(arguments.gate, sample);
  const float modulation =
      scale == nullptr ? 1 : 1 + static_cast<float>(scale[column]);
  const float gain = gate == nullptr ? 1 : static_cast<float>(gate[column]);
  const float weight =
      arguments.weight == nullptr
          ? 1
          : arguments.weight[arguments.has_scalar_weight ? 0 : column];
  const float bias = arguments.bias == nullptr ? 0 : arguments.bias[column];
  const int64_t index = sample * size + column;
  store_if<T>(request.d_shift, index, sums[kOfNormed]);
  store_if<T>(request.d_scale, index,
              weight * sums[kOfNormedTimesHat] + bias * sums[kOfNormed]);
  store_if<T>(request.d_gate, index, sums[kOfSumTimesBranch]);
  partial[0] = modulation * sums[kOfNormedTimesHat];
  partial[size] = modulation * sums[kOfNormed];
  partial[2 * size] = gain * sums[kOfSum];
}

constexpr int kColumns = 32;
constexpr int kSamples = 32;

// Adds the samples' shares in a fixed order.
__global__ void finish_parameters(AdaLnBackwardRequest request,
                                  int num_blocks) {
  __shared__ float scratch[kSamples][kColumns + 1];
  float* out = blockIdx.y == 0   ? request.d_weight
               : blockIdx.y == 1 ? request.d_bias
                                 : request.d_branch_bias;
  if (out == nullptr) return;
  const int size = static_cast<int>(request.arguments.size);
  const int column = blockIdx.x * kColumns + threadIdx.x;
  float total = 0;
  if (column < size) {
    const float* from = request.partial_sums + blockIdx.y * size + column;
    for (int64_t sample = threadIdx.y; sample < request.arguments.batch;
         sample += kSamples) {
      total += from[sample * num_blocks * kAdaLnSums * size];
    }
  }
  scratch[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y != 0 || column >= size) return;
  total = 0;
  for (int i = 0; i < kSamples; ++i) total += scratch[i][threadIdx.x];
  out[column] = total;
}

}  // namespace

// Launches the kernels on a stream of the current device.
extern "C" LOCKSTEP_EXPORT void lockstep_cuda_adaln_residual_backward(
    const AdaLnBackwardRequest* request, void* stream) {
  const AdaLnArguments& arguments = request->arguments;
  const auto queue = static_cast<cudaStream_t>(stream);
  const int blocks = static_cast<int>(adaln_blocks(arguments.count));
  const int size = static_cast<int>(arguments.size);
  with_layout(arguments, [&](auto layout, auto* element) {
    using Layout = decltype(layout);
    using T = std::remove_pointer_t<decltype(element)>;
    constexpr int kRows = Layout::kRowsPerBlock;
    const int rows = (static_cast<int>(arguments.count) + blocks - 1) / blocks;
    const dim3 grid(blocks, static_cast<unsigned>(arguments.batch));
    adaln_residual_backward<T, Layout>
        <<<grid, kAdaLnThreads, kRows * size * sizeof(float), queue>>>(
            *request, (rows + kRows - 1) / kRows * kRows);
    finish_samples<T><<<dim3((size + kColumnThreads - 1) / kColumnThreads,
                             static_cast<unsigned>(arguments.batch)),
                        kColumnThreads, 0, queue>>>(*request, blocks);
  });
  finish_parameters<<<dim3((size + kColumns - 1) / kColumns, 3),
                      dim3(kColumns, kSamples), 0, queue>>>(*request, blocks);
  check_launch("adaln_residual_backward");
}
