#include "lockstep/kernels/rope.h"

#include <ATen/ATen.h>

namespace lockstep::kernels {
namespace {

// The other channel of each pair.
at::Tensor partners(const at::Tensor& x, RopePairs pairs) {
  const int64_t size = x.size(-1);
  if (pairs == RopePairs::kHalves) return at::roll(x, size / 2, -1);
  return x.unflatten(-1, {2, 2, size / 4}).flip({-2}).flatten(-3);
}

}  // namespace

at::Tensor apply_rope(const at::Tensor& x, const RopeTable& table) {
  if (table.pairs == RopePairs::kInterleaved) {
    const at::Tensor pairs = at::view_as_complex(x.unflatten(-1, {-1, 2}));
    return at::view_as_real(pairs * table.complex).flatten(-2);
  }
  return at::addcmul(x * table.cos, partners(x, table.pairs), table.sin);
}

RopeTable slice_positions(const RopeTable& table, int64_t begin, int64_t end) {
  RopeTable part{.pairs = table.pairs};
  if (table.pairs == RopePairs::kInterleaved) {
    part.complex = table.complex.slice(0, begin, end);
  } else {
    part.cos = table.cos.slice(0, begin, end);
    part.sin = table.sin.slice(0, begin, end);
  }
  return part;
}

RopeTable moved_to(const RopeTable& table, const at::TensorOptions& options) {
  RopeTable moved{.pairs = table.pairs};
  if (table.pairs == RopePairs::kInterleaved) {
    moved.complex = table.complex.to(options.dtype(
        c10::toComplexType(c10::typeMetaToScalarType(options.dtype()))));
  } else {
    moved.cos = table.cos.to(options);
    moved.sin = table.sin.to(options);
  }
  return moved;
}

}  // namespace lockstep::kernels
