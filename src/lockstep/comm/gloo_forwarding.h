// A c10d backend that hands every call to another one. Private to comm/.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

namespace lockstep::comm {

// The base of a backend that runs some collectives itself.
class GlooForwarding : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  GlooForwarding(int rank, int size, c10::intrusive_ptr<c10d::Backend> gloo)
      : Backend(rank, size), gloo_(std::move(gloo)) {}

  WorkPtr broadcast(Tensors& tensors,
                    const c10d::BroadcastOptions& options) override {
    return gloo_->broadcast(tensors, options);
  }
  WorkPtr allreduce(Tensors& tensors,
                    const c10d::AllreduceOptions& options) override {
    return gloo_->allreduce(tensors, options);
  }
  WorkPtr allreduce_sparse(Tensors& tensors,
                           const c10d::AllreduceOptions& options) override {
    return gloo_->allreduce_sparse(tensors, options);
  }
  WorkPtr allreduce_coalesced(
      Tensors& tensors,
      const c10d::AllreduceCoalescedOptions& options) override {
    return gloo_->allreduce_coalesced(tensors, options);
  }
  WorkPtr reduce(Tensors& tensors,
                 const c10d::ReduceOptions& options) override {
    return gloo_->reduce(tensors, options);
  }
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override {
    return gloo_->allgather(outputs, inputs, options);
  }
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override {
    return gloo_->_allgather_base(output, input, options);
  }
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override {
    return gloo_->allgather_coalesced(outputs, inputs, options);
  }
  WorkPtr allgather_into_tensor_coalesced(
      Tensors& outputs, Tensors& inputs,
      const c10d::AllgatherOptions& options) override {
    return gloo_->allgather_into_tensor_coalesced(outputs, inputs, options);
  }
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override {
    return gloo_->gather(outputs, inputs, options);
  }
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& options) override {
    return gloo_->scatter(outputs, inputs, options);
  }
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override {
    return gloo_->reduce_scatter(outputs, inputs, options);
  }
  WorkPtr _reduce_scatter_base(
      at::Tensor& output, at::Tensor& input,
      const c10d::ReduceScatterOptions& options) override {
    return gloo_->_reduce_scatter_base(output, input, options);
  }
  WorkPtr reduce_scatter_tensor_coalesced(
      Tensors& outputs, Tensors& inputs,
      const c10d::ReduceScatterOptions& options) override {
    return gloo_->reduce_scatter_tensor_coalesced(outputs, inputs, options);
  }
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
                        std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits,
                        const c10d::AllToAllOptions& options) override {
    return gloo_->alltoall_base(output, input, output_splits, input_splits,
                                options);
  }
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override {
    return gloo_->alltoall(outputs, inputs, options);
  }
  WorkPtr send(Tensors& tensors, int to, int tag) override {
    return gloo_->send(tensors, to, tag);
  }
  WorkPtr recv(Tensors& tensors, int from, int tag) override {
    return gloo_->recv(tensors, from, tag);
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    return gloo_->recvAnysource(tensors, tag);
  }
  void monitoredBarrier(const c10d::BarrierOptions& options,
                        bool wait_for_all) override {
    gloo_->monitoredBarrier(options, wait_for_all);
  }
  void setSequenceNumberForGroup() override {
    gloo_->setSequenceNumberForGroup();
  }
  uint64_t getSequenceNumberForGroup() override {
    return gloo_->getSequenceNumberForGroup();
  }
  void setTimeout(std::chrono::milliseconds timeout) override {
    gloo_->setTimeout(timeout);
  }

 protected:
  // Nothing may be called afterwards.
  c10::intrusive_ptr<c10d::Backend> take_gloo() { return std::move(gloo_); }

 private:
  c10::intrusive_ptr<c10d::Backend> gloo_;
};

}  // namespace lockstep::comm
