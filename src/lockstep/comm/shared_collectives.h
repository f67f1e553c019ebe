// Collectives over the memory of one machine's ranks, on plain bytes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/comm/shared_channel.h"
#include "lockstep/comm/shared_sum.h"

namespace lockstep::comm {

enum class SharedKind : uint32_t {
  kAllReduce = 1,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kBarrier,
};

// One call. All ranks pass the same but for pointers.
struct SharedCall {
  SharedKind kind = SharedKind::kBarrier;
  Element element = Element::kUint8;
  Reduction reduction = Reduction::kSum;
  int root = 0;
  // Size of the tensor that a rank puts in.
  size_t bytes = 0;
  // all_reduce and broadcast work in place, on `output`.
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  // all_gather: where the tensor of each rank goes.
  std::vector<std::byte*> outputs = {};
};

// Runs collectives of one channel, one after the other. Not thread-safe. After
// an error the channel is of no use.
class SharedCollectives {
 public:
  explicit SharedCollectives(SharedChannel channel)
      : channel_(std::move(channel)) {}

  // Shows the call, and what fits beside it, to the other ranks. Does not wait.
  void begin(const SharedCall& call);
  // Completes what was begun. Throws PeerError when a rank is gone or called
  // something else, TimeoutError when one does not arrive.
  void finish(const SharedCall& call, const WaitConfig& wait);

 private:
  bool is_small(const SharedCall& call) const;
  void compare_calls(const SharedCall& call);
  bool is_direct(const SharedCall& call) const;
  ReduceEdges agreed_edges(const SharedCall& call) const;
  void finish_small(const SharedCall& call);
  void reduce_directly(const SharedCall& call);
  void reduce_by_pieces(const SharedCall& call);
  void broadcast_by_pieces(const SharedCall& call);
  void gather_by_pieces(const SharedCall& call);
  void scatter_by_pieces(const SharedCall& call);

  SharedChannel channel_;
};

}  // namespace lockstep::comm
