#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/random.h"
#include "lockstep/tensor/cuda_library.h"
#include "lockstep/tensor/draw.h"

namespace lockstep {
namespace {

// A run of one sample's blocks. Compilers vectorise the loop over whole ones.
template <typename Draw>
void fill_run(const tensor::DrawRequest& request, Draw draw, int64_t sample,
              int64_t first, int64_t last) {
  const auto seed = static_cast<uint64_t>(request.seeds[sample]);
  const uint64_t stream = request.stream;
  auto* const out = static_cast<typename Draw::Value*>(request.out) +
                    sample * request.num_values;
  const int64_t whole = std::min(last, request.num_values / Draw::kPerBlock);
  for (int64_t block = first; block < whole; ++block) {
    draw(seed, stream, static_cast<uint64_t>(block),
         out + block * Draw::kPerBlock);
  }
  if (whole < last) tensor::fill_block(request, draw, sample, last - 1);
}

void fill_on_cpu(const tensor::DrawRequest& request) {
  constexpr int64_t kBlocksPerTask = 2048;
  tensor::with_draw(request, [&](auto draw) {
    const int64_t blocks = tensor::blocks_per_sample<decltype(draw)>(request);
    at::parallel_for(0, request.num_samples * blocks, kBlocksPerTask,
                     [&](int64_t begin, int64_t end) {
                       while (begin < end) {
                         const int64_t sample = begin / blocks;
                         const int64_t first = begin % blocks;
                         const int64_t last =
                             std::min(blocks, first + end - begin);
                         fill_run(request, draw, sample, first, last);
                         begin += last - first;
                       }
                     });
  });
}

void fill_on_cuda(const tensor::DrawRequest& request, c10::Device device) {
  const c10::DeviceGuard guard(device);
  const c10::impl::VirtualGuardImpl cuda(device.type());
  tensor::cuda_function<void(const tensor::DrawRequest*, void*)>(
      "lockstep_cuda_fill_draws")(
      &request, cuda.getStreamNativeHandle(cuda.getStream(device)));
}

// One row of draws per seed.
at::Tensor rows(const at::Tensor& seeds, at::IntArrayRef shape,
                at::ScalarType dtype, tensor::DrawRequest request) {
  std::vector<int64_t> sizes = {seeds.size(0)};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  at::Tensor out = at::empty(sizes, seeds.options().dtype(dtype));
  if (out.numel() == 0) return out;
  request.seeds = seeds.const_data_ptr<int64_t>();
  request.num_samples = seeds.size(0);
  request.num_values = out.numel() / seeds.size(0);
  request.out = out.mutable_data_ptr();
  if (out.is_cuda()) {
    fill_on_cuda(request, out.device());
  } else {
    fill_on_cpu(request);
  }
  return out;
}

void require_floating(at::ScalarType dtype) {
  if (dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf ||
      dtype == at::kBFloat16) {
    return;
  }
  throw ConfigError(std::string("random draws cannot have the type ") +
                    c10::toString(dtype) +
                    ": ask for Float, Double, Half or BFloat16");
}

}  // namespace

SampleRandom::SampleRandom(const at::Tensor& seeds)
    : seeds_(seeds.contiguous()) {
  if (seeds.scalar_type() == at::kLong && seeds.dim() == 1 &&
      (seeds.is_cpu() || seeds.is_cuda())) {
    return;
  }
  std::ostringstream message;
  message << "the seeds of a batch are " << seeds.scalar_type() << " "
          << seeds.sizes() << " on " << seeds.device()
          << ": pass one int64 per sample, on the CPU or a GPU";
  throw ConfigError(message.str());
}

at::Tensor SampleRandom::uniform(at::IntArrayRef shape_of_one_sample,
                                 at::ScalarType dtype) {
  require_floating(dtype);
  const uint64_t stream = next_stream_++;
  if (dtype == at::kDouble) {
    return rows(seeds_, shape_of_one_sample, dtype,
                {.kind = tensor::DrawKind::kUniformDouble, .stream = stream});
  }
  return rows(seeds_, shape_of_one_sample, at::kFloat,
              {.kind = tensor::DrawKind::kUniformFloat, .stream = stream})
      .to(dtype);
}

at::Tensor SampleRandom::normal(at::IntArrayRef shape_of_one_sample,
                                at::ScalarType dtype) {
  require_floating(dtype);
  const uint64_t stream = next_stream_++;
  if (dtype == at::kDouble) {
    return rows(seeds_, shape_of_one_sample, dtype,
                {.kind = tensor::DrawKind::kNormalDouble, .stream = stream});
  }
  return rows(seeds_, shape_of_one_sample, at::kFloat,
              {.kind = tensor::DrawKind::kNormalFloat, .stream = stream})
      .to(dtype);
}

at::Tensor SampleRandom::integers(int64_t below,
                                  at::IntArrayRef shape_of_one_sample) {
  if (below <= 0) {
    throw ConfigError("random integers below " + std::to_string(below) +
                      " do not exist: the bound must be at least 1");
  }
  return rows(seeds_, shape_of_one_sample, at::kLong,
              {.kind = tensor::DrawKind::kInteger,
               .below = below,
               .stream = next_stream_++});
}

}  // namespace lockstep
