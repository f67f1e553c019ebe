// Products of 64 x n x 16 by a group of four warps (wgmma of sm_90a), and the
// copies that bring their right side to shared memory.
//
// A thread of warp w of the group, with g = lane / 4 and c = 2 * (lane % 4),
// holds of
//   a, 64 x 16: {(r, c), (r + 8, c), (r, c + 8), (r + 8, c + 8)}, pairs of that
//               element and the next in its row, where r = 16 * w + g
//   d, 64 x n:  (r, c), (r, c + 1), (r + 8, c), (r + 8, c + 1) of every 8
//   columns
// What a product leaves in 16 columns of d is, rounded, a's part of another.
//
// b lies in shared memory as rows of 64 elements, whose chunks of 16 bytes
// change places: chunk i of row r lies in place i ^ (r % 8). It begins at a
// multiple of 1024 bytes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace lockstep::kernels {

constexpr int kWarpsOfGroup = 4;
constexpr int kThreadsOfGroup = 32 * kWarpsOfGroup;
constexpr int kRowsOfGroup = 64;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define LOCKSTEP_SM90A(...) asm volatile(__VA_ARGS__)
#else
#define LOCKSTEP_SM90A(...) __trap()
#endif

// What the products take of shared memory.
__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

enum class RightSide : int {
  kColumns = 0,  // Columns of b are rows in shared memory.
  kRows = 1,     // Rows of b are rows in shared memory.
};

// The matrix at this address: swizzled in 128 bytes, 1024 bytes from 8 rows to
// the next 8.
__device__ inline uint64_t matrix_at(uint32_t address) {
  constexpr uint64_t kSwizzled = uint64_t{1} << 62;
  constexpr uint64_t kStride = uint64_t{1024 >> 4} << 32;
  constexpr uint64_t kUnused = uint64_t{1} << 16;
  return kSwizzled | kStride | kUnused | ((address & 0x3ffff) >> 4);
}

// To add for a matrix so many bytes behind, in the same chunks of 1024 bytes.
__device__ constexpr uint64_t matrix_offset(unsigned bytes) {
  return bytes >> 4;
}

#define LOCKSTEP_OF_8(i) \
  "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define LOCKSTEP_OF_48                                                    \
  LOCKSTEP_OF_8(0), LOCKSTEP_OF_8(1), LOCKSTEP_OF_8(2), LOCKSTEP_OF_8(3), \
      LOCKSTEP_OF_8(4), LOCKSTEP_OF_8(5)
#define LOCKSTEP_OF_64                                                    \
  LOCKSTEP_OF_8(0), LOCKSTEP_OF_8(1), LOCKSTEP_OF_8(2), LOCKSTEP_OF_8(3), \
      LOCKSTEP_OF_8(4), LOCKSTEP_OF_8(5), LOCKSTEP_OF_8(6), LOCKSTEP_OF_8(7)
#define LOCKSTEP_OF_96                                                        \
  LOCKSTEP_OF_8(0), LOCKSTEP_OF_8(1), LOCKSTEP_OF_8(2), LOCKSTEP_OF_8(3),     \
      LOCKSTEP_OF_8(4), LOCKSTEP_OF_8(5), LOCKSTEP_OF_8(6), LOCKSTEP_OF_8(7), \
      LOCKSTEP_OF_8(8), LOCKSTEP_OF_8(9), LOCKSTEP_OF_8(10), LOCKSTEP_OF_8(11)

// d = a * b, or d += a * b. Until wait_for_products() neither may be touched.
template <typename T, RightSide side>
struct Product;

#define LOCKSTEP_PRODUCT(name, n, ds, a0, a1, a2, a3, b, add, trans)          \
  __device__ static void run(float(&d)[n / 8][4], const uint32_t(&a)[4],      \
                             uint64_t matrix, bool is_added) {                \
    LOCKSTEP_SM90A(                                                           \
        "{\n.reg .pred p;\nsetp.ne.b32 p, " add                               \
        ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name \
        " {" ds "}, {" a0 ", " a1 ", " a2 ", " a3 "}, " b ", p, 1, 1, " trans \
        ";\n}\n" : LOCKSTEP_OF_##n : "r"(a[0]),                               \
        "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix),                         \
        "r"(static_cast<int>(is_added)), "n"(static_cast<int>(side)));        \
  }

#define LOCKSTEP_PRODUCTS(name)                                                \
  LOCKSTEP_PRODUCT(name, 48,                                                   \
                   "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "   \
                   "%13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23",    \
                   "%24", "%25", "%26", "%27", "%28", "%29", "%30")            \
  LOCKSTEP_PRODUCT(name, 64,                                                   \
                   "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "   \
                   "%13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "   \
                   "%24, %25, %26, %27, %28, %29, %30, %31",                   \
                   "%32", "%33", "%34", "%35", "%36", "%37", "%38")            \
  LOCKSTEP_PRODUCT(                                                            \
      name, 96,                                                                \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, " \
      "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, " \
      "%44, %45, %46, %47",                                                    \
      "%48", "%49", "%50", "%51", "%52", "%53", "%54")

template <RightSide side>
struct Product<__nv_bfloat16, side> {
  LOCKSTEP_PRODUCTS("bf16")
};
template <RightSide side>
struct Product<__half, side> {
  LOCKSTEP_PRODUCTS("f16")
};

#undef LOCKSTEP_PRODUCTS
#undef LOCKSTEP_PRODUCT
#undef LOCKSTEP_OF_48
#undef LOCKSTEP_OF_64
#undef LOCKSTEP_OF_96
#undef LOCKSTEP_OF_8

// All values are computed before what follows.
template <int kCount>
__device__ inline void settle(float (&values)[kCount][4]) {
#pragma unroll
  for (int i = 0; i < 4 * kCount; ++i) {
    asm volatile("" : "+f"(values[i / 4][i % 4])::"memory");
  }
}
template <int kCount>
__device__ inline void settle(uint32_t (&values)[kCount][4]) {
#pragma unroll
  for (int i = 0; i < 4 * kCount; ++i) {
    asm volatile("" : "+r"(values[i / 4][i % 4])::"memory");
  }
}

template <typename First, typename Second>
__device__ inline void settle(First& first, Second& second) {
  settle(first);
  settle(second);
}

// Between what computed a and d and the products that take them.
__device__ inline void begin_products() {
  LOCKSTEP_SM90A("wgmma.fence.sync.aligned;\n" :: : "memory");
}

__device__ inline void wait_for_products() {
  LOCKSTEP_SM90A(
      "wgmma.commit_group.sync.aligned;\n"
      "wgmma.wait_group.sync.aligned 0;\n" :: : "memory");
}

// 16 bytes, or zeros; nothing is read then.
__device__ inline void copy_async(void* to, const void* from, bool is_there) {
  LOCKSTEP_SM90A("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(is_there ? 16 : 0) : "memory");
}
__device__ inline void copy_async(float* to, const float* from, bool is_there) {
  LOCKSTEP_SM90A("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(is_there ? 4 : 0) : "memory");
}

// Copies of this thread have arrived, where products see them.
__device__ inline void wait_for_copies() {
  LOCKSTEP_SM90A(
      "cp.async.wait_all;\n"
      "fence.proxy.async.shared::cta;\n" :: : "memory");
}

#undef LOCKSTEP_SM90A

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

}  // namespace lockstep::kernels
