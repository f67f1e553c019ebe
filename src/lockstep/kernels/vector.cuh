// Loads and stores of neighbouring elements, computed in float.
#pragma once

#include <cstdint>

namespace lockstep::kernels {

// At most 16 bytes are moved at once.
template <typename T, int kCount>
struct alignas(kCount * sizeof(T) < 16 ? kCount * sizeof(T) : 16) Pack {
  T v[kCount];
};

// Zeros for a null pointer.
template <int kCount, typename T>
__device__ inline Pack<T, kCount> load_raw_or_zero(const T* from,
                                                   int64_t offset) {
  if (from == nullptr) return {};
  return *reinterpret_cast<const Pack<T, kCount>*>(from + offset);
}

template <typename T, int kCount>
__device__ inline void load_pack(float (&out)[kCount], const T* from) {
  const auto pack = *reinterpret_cast<const Pack<T, kCount>*>(from);
#pragma unroll
  for (int i = 0; i < kCount; ++i) out[i] = static_cast<float>(pack.v[i]);
}

template <typename T, int kCount>
__device__ inline void store_pack(T* to, const float (&values)[kCount]) {
  Pack<T, kCount> pack;
#pragma unroll
  for (int i = 0; i < kCount; ++i) pack.v[i] = static_cast<T>(values[i]);
  *reinterpret_cast<Pack<T, kCount>*>(to) = pack;
}

}  // namespace lockstep::kernels
