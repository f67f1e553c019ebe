// The c10d backend of CPU tensors whose ranks share a machine.
//
// all_reduce (sum, product, min, max), broadcast, all_gather, reduce_scatter
// and barrier run over shared memory, with the bits of Gloo. Everything else,
// and other element types and reductions, goes to the Gloo backend beside it.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>

#include "lockstep/base/status.h"
#include "lockstep/comm/shared_arena.h"
#include "lockstep/tensor/tensor.h"

namespace c10d {
class Backend;
struct ReduceOp;
}  // namespace c10d

namespace lockstep::comm {

// Whether the backend runs a collective of such a tensor itself. All ranks see
// it alike.
bool can_share(const at::Tensor& tensor);
bool can_share_sum(const at::Tensor& tensor, const c10d::ReduceOp& op);

struct SharedBackendConfig {
  std::shared_ptr<SharedArena> arena = nullptr;
  int channel = 0;
  std::chrono::milliseconds timeout{0};
  // For everything else; may be null when there is nothing else.
  c10::intrusive_ptr<c10d::Backend> gloo = {};
  // The job's state is read from it.
  base::StatusWriter status = {};
  // Note the collectives of this group there.
  bool notes_collectives = false;
};

// Thread-safe as Gloo's: calls are run in the order in which they are made.
// Those with asyncOp = false run on the calling thread.
c10::intrusive_ptr<c10d::Backend> make_shared_backend(
    SharedBackendConfig config);

}  // namespace lockstep::comm
