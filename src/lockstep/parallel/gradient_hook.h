// What happens to a full bucket of gradients: how it is averaged over the
// ranks.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/intrusive_ptr.h>

#include <functional>

namespace c10d {
class GradBucket;
class ProcessGroup;
}  // namespace c10d
namespace c10::ivalue {
struct Future;
}

namespace lockstep {

using GradientFuture = c10::intrusive_ptr<c10::ivalue::Future>;

// Gets a bucket of this rank's gradients, not divided yet, and returns a future
// of the averaged tensor (or list of one). Runs on the thread of the backward
// pass; must start the same collectives on every rank. Include
// <torch/csrc/distributed/c10d/comm.hpp> to write one.
using GradientHook = std::function<GradientFuture(c10d::GradBucket&)>;

// Sends the gradients as fp16 or bf16: half the bytes, rounded gradients. Equal
// to Python's fp16_compress_hook and bf16_compress_hook.
GradientHook compress_gradients(
    const c10::intrusive_ptr<c10d::ProcessGroup>& group, c10::ScalarType dtype);

// For a world of one: the bucket is its own average.
GradientHook keep_gradients();

}  // namespace lockstep
