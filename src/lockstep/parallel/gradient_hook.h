// Gradient hooks: how a full bucket of gradients is averaged over the ranks.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/intrusive_ptr.h>

#include "lockstep/ddp.h"

namespace c10d {
class ProcessGroup;
}

namespace lockstep::parallel {

// Sends the gradients as fp16 or bf16: half the bytes, rounded gradients. Equal
// to Python's fp16_compress_hook and bf16_compress_hook.
GradientHook compress_gradients(
    const c10::intrusive_ptr<c10d::ProcessGroup>& group, c10::ScalarType dtype);

// For a world of one: the bucket is its own average.
GradientHook keep_gradients();

}  // namespace lockstep::parallel
