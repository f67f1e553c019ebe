#include "lockstep/fingerprint.h"

#include <ATen/Parallel.h>

#include <atomic>
#include <cstring>

#include "lockstep/random.h"
#include "lockstep/tensor/cuda_library.h"

namespace lockstep {
namespace {

constexpr int64_t kWordBytes = 4;
constexpr int64_t kWordsPerTask = 1 << 15;
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

// Hashes of words are added, so threads and GPU blocks may process them in any
// order.
uint64_t hash_words(const std::byte* bytes, int64_t num_bytes) {
  const int64_t num_words = (num_bytes + kWordBytes - 1) / kWordBytes;
  std::atomic<uint64_t> total{0};
  at::parallel_for(
      0, num_words, kWordsPerTask, [&](int64_t begin, int64_t end) {
        uint64_t sum = 0;
        for (int64_t i = begin; i < end; ++i) {
          uint32_t word = 0;
          const int64_t at = i * kWordBytes;
          std::memcpy(
              &word, bytes + at,
              static_cast<size_t>(std::min(kWordBytes, num_bytes - at)));
          sum += mix_bits(word + static_cast<uint64_t>(i + 1) * kGolden);
        }
        total += sum;
      });
  return total;
}

uint64_t hash_of(const at::Tensor& tensor) {
  const at::Tensor packed = tensor.detach().contiguous();
  const auto num_bytes = static_cast<int64_t>(packed.nbytes());
  if (packed.is_cuda()) {
    return tensor::cuda_function<uint64_t(const void*, int64_t, int)>(
        "lockstep_cuda_hash_words")(packed.const_data_ptr(), num_bytes,
                                    packed.device().index());
  }
  return hash_words(static_cast<const std::byte*>(packed.const_data_ptr()),
                    num_bytes);
}

}  // namespace

uint64_t fingerprint(const std::vector<at::Tensor>& tensors) {
  uint64_t result = kGolden;
  for (const at::Tensor& tensor : tensors) {
    result = mix_bits(result ^ hash_of(tensor)) +
             static_cast<uint64_t>(tensor.nbytes());
  }
  return result;
}

}  // namespace lockstep
