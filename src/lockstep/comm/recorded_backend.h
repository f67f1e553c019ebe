// A c10d backend that notes each collective on the status page of its rank.
//
// Recorded<ProcessGroupGloo, ...> is a ProcessGroupGloo: the Reducer and its
// Logger, which cast to the concrete type, keep working. Private to the backend
// files.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

#include "lockstep/base/status.h"
#include "lockstep/comm/collective_gate.h"

namespace lockstep::comm {

inline int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) {
    bytes += static_cast<int64_t>(tensor.numel()) * tensor.element_size();
  }
  return bytes;
}

// Completion::track(work, number) notes on the page when the collective ends.
template <typename Backend, typename Completion>
class Recorded final : public Backend {
 public:
  template <typename... Arguments>
  explicit Recorded(const base::StatusWriter& status, Arguments&&... arguments)
      : Backend(std::forward<Arguments>(arguments)...),
        status_(status),
        completion_(status) {}

  using Tensors = std::vector<at::Tensor>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  WorkPtr broadcast(Tensors& tensors,
                    const c10d::BroadcastOptions& options) override {
    return note(base::Collective::kBroadcast, bytes_of(tensors),
                [&] { return Backend::broadcast(tensors, options); });
  }

  WorkPtr allreduce(Tensors& tensors,
                    const c10d::AllreduceOptions& options) override {
    return note(base::Collective::kAllReduce, bytes_of(tensors),
                [&] { return Backend::allreduce(tensors, options); });
  }

  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override {
    return note(base::Collective::kAllGather, bytes_of(inputs),
                [&] { return Backend::allgather(outputs, inputs, options); });
  }

  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override {
    return note(base::Collective::kAllGather, bytes_of({input}), [&] {
      return Backend::_allgather_base(output, input, options);
    });
  }

  WorkPtr _reduce_scatter_base(
      at::Tensor& output, at::Tensor& input,
      const c10d::ReduceScatterOptions& options) override {
    return note(base::Collective::kReduceScatter, bytes_of({input}), [&] {
      return Backend::_reduce_scatter_base(output, input, options);
    });
  }

  // Ends what is under way; later collectives throw PeerError.
  void abort() override {
    gate_.shut();
    Backend::abort();
  }

 private:
  template <typename Call>
  WorkPtr note(base::Collective collective, int64_t bytes, Call call) {
    const int64_t number = status_.start_collective(collective, bytes);
    try {
      const CollectiveGate::Pass pass = gate_.enter();
      WorkPtr work = call();
      completion_.track(work, number);
      return work;
    } catch (...) {
      status_.fail_collective(number);
      throw;
    }
  }

  base::StatusWriter status_;
  CollectiveGate gate_;
  Completion completion_;
};

}  // namespace lockstep::comm
