// Products of 16 x 8 x 16 on tensor cores and the loads that feed them: what
// mma.sync, ldmatrix and cp.async do, for processors of sm_80 and later.
//
// A product's fragments lie across a warp. Thread t, with g = t / 4 and
// c = 2 * (t % 4), holds of
//   a, 16 x 16: {(g, c), (g + 8, c), (g, c + 8), (g + 8, c + 8)}
//   b, 16 x 8:  {(c, g), (c + 8, g)}
//   d, 16 x 8:  (g, c), (g, c + 1), (g + 8, c), (g + 8, c + 1)
// where an element of a and b stands for a pair: that one and the next, in a's
// row or b's column.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace lockstep::kernels {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define LOCKSTEP_SM80(...) asm volatile(__VA_ARGS__)
#else
#define LOCKSTEP_SM80(...) __trap()
#endif

// d += a * b
template <typename T>
__device__ inline void multiply_add(float (&d)[4], const uint32_t (&a)[4],
                                    uint32_t b0, uint32_t b1);

template <>
__device__ inline void multiply_add<__nv_bfloat16>(float (&d)[4],
                                                   const uint32_t (&a)[4],
                                                   uint32_t b0, uint32_t b1) {
  LOCKSTEP_SM80(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n" : "+f"(d[0]),
      "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]),
      "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ inline void multiply_add<__half>(float (&d)[4],
                                            const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1) {
  LOCKSTEP_SM80(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n" : "+f"(d[0]),
      "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]),
      "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Four matrices of 8 x 8; threads 8 i to 8 i + 7 name the rows of matrix i, of
// 16 bytes each. out[i]: of matrix i the pair (g, c).
__device__ inline void load_matrices(uint32_t (&out)[4], const void* row) {
  LOCKSTEP_SM80(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n" : "=r"(
          out[0]),
      "=r"(out[1]), "=r"(out[2]), "=r"(out[3]) : "r"(shared_address(row)));
}

// out[i]: of matrix i the elements (c, g) and (c + 1, g).
__device__ inline void load_transposed_matrices(uint32_t (&out)[4],
                                                const void* row) {
  LOCKSTEP_SM80(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
      : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
      : "r"(shared_address(row)));
}

// 16 bytes, or zeros; nothing is read then.
__device__ inline void copy_async(void* to, const void* from, bool is_there) {
  LOCKSTEP_SM80("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(
                    shared_address(to)),
                "l"(from), "r"(is_there ? 16 : 0));
}

// Copies of this thread have arrived.
__device__ inline void wait_for_copies() {
  LOCKSTEP_SM80("cp.async.wait_all;\n" :: : "memory");
}

// 2 to the power of x, within 2 units in the last place.
__device__ inline float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

// a in the lower half.
template <typename T>
__device__ inline uint32_t pack_pair(float a, float b) {
  const T pair[2] = {static_cast<T>(a), static_cast<T>(b)};
  uint32_t packed;
  memcpy(&packed, pair, sizeof(packed));
  return packed;
}

template <typename T>
__device__ inline float2 unpack_pair(uint32_t packed) {
  T pair[2];
  memcpy(pair, &packed, sizeof(packed));
  return {static_cast<float>(pair[0]), static_cast<float>(pair[1])};
}

#undef LOCKSTEP_SM80

}  // namespace lockstep::kernels
