#include "lockstep/comm/shared_backend.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <atomic>
#include <optional>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "lockstep/comm/gloo_forwarding.h"
#include "lockstep/comm/shared_sum.h"
#include "lockstep/comm/shared_work.h"

namespace lockstep::comm {
namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// Those that Gloo has too.
std::optional<Element> find_element(at::ScalarType type) {
  switch (type) {
    case at::kDouble: return Element::kFloat64;
    case at::kFloat: return Element::kFloat32;
    case at::kHalf: return Element::kFloat16;
    case at::kBFloat16: return Element::kBFloat16;
    case at::kChar: return Element::kInt8;
    case at::kBool:
    case at::kByte: return Element::kUint8;
    case at::kInt: return Element::kInt32;
    case at::kLong: return Element::kInt64;
    default: return std::nullopt;
  }
}

std::optional<Reduction> find_reduction(const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM: return Reduction::kSum;
    case c10d::ReduceOp::PRODUCT: return Reduction::kProduct;
    case c10d::ReduceOp::MIN: return Reduction::kMin;
    case c10d::ReduceOp::MAX: return Reduction::kMax;
    default: return std::nullopt;
  }
}

bool fits(const at::Tensor& tensor, const at::Tensor& other) {
  return can_share(other) && other.sizes() == tensor.sizes() &&
         other.scalar_type() == tensor.scalar_type();
}

// A tensor as one run of bytes; a copy where it is none.
at::Tensor dense(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach();
  return plain.is_non_overlapping_and_dense() ? plain : plain.contiguous();
}

std::byte* bytes_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.mutable_data_ptr());
}

void copy_back(const at::Tensor& from, const at::Tensor& to) {
  if (!from.is_alias_of(to)) to.detach().copy_(from);
}

class SharedBackend final : public GlooForwarding {
 public:
  explicit SharedBackend(SharedBackendConfig config)
      : GlooForwarding(config.arena->rank(), config.arena->size(), config.gloo),
        arena_(std::move(config.arena)),
        timeout_(config.timeout),
        group_(std::make_shared<SharedGroup>(SharedChannel(
            arena_, config.channel,
            {.is_job_lost =
                 [status = config.status] { return status.job_is_lost(); },
             .is_closed = [closed = is_closed_] { return closed->load(); }}))) {
    group_->status = config.status;
    group_->notes_collectives = config.notes_collectives;
  }

  ~SharedBackend() override {
    is_closed_->store(true);
    group_->queue.end();
  }

  const std::string getBackendName() const override { return "shared"; }

  WorkPtr allreduce(Tensors& tensors,
                    const c10d::AllreduceOptions& options) override {
    if (tensors.size() != 1 || !can_share_sum(tensors[0], options.reduceOp)) {
      return GlooForwarding::allreduce(tensors, options);
    }
    const at::Tensor memory = dense(tensors[0]);
    SharedRequest request =
        make_request(base::Collective::kAllReduce, memory, options.timeout);
    request.call.kind = SharedKind::kAllReduce;
    request.call.reduction = *find_reduction(options.reduceOp);
    request.call.output = bytes_of(memory);
    request.type = c10d::OpType::ALLREDUCE;
    request.title = "shared:all_reduce";
    request.result = tensors;
    request.unpack = [memory, to = tensors[0]] { copy_back(memory, to); };
    return start(std::move(request), options.asyncOp);
  }

  WorkPtr broadcast(Tensors& tensors,
                    const c10d::BroadcastOptions& options) override {
    if (tensors.size() != 1 || !can_share(tensors[0]) || options.rootRank < 0 ||
        options.rootRank >= getSize()) {
      return GlooForwarding::broadcast(tensors, options);
    }
    const at::Tensor memory = dense(tensors[0]);
    SharedRequest request =
        make_request(base::Collective::kBroadcast, memory, options.timeout);
    request.call.kind = SharedKind::kBroadcast;
    request.call.root = static_cast<int>(options.rootRank);
    request.call.output = bytes_of(memory);
    request.type = c10d::OpType::BROADCAST;
    request.title = "shared:broadcast";
    request.result = tensors;
    request.unpack = [memory, to = tensors[0]] { copy_back(memory, to); };
    return start(std::move(request), options.asyncOp);
  }

  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override {
    const bool is_ours =
        inputs.size() == 1 && outputs.size() == 1 && can_share(inputs[0]) &&
        outputs[0].size() == static_cast<size_t>(getSize()) &&
        std::all_of(
            outputs[0].begin(), outputs[0].end(),
            [&](const auto& tensor) { return fits(inputs[0], tensor); });
    if (!is_ours) return GlooForwarding::allgather(outputs, inputs, options);
    return gather_all(inputs[0], outputs[0], options);
  }

  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override {
    if (!can_share(input) || !can_share(output) || output.dim() == 0 ||
        output.numel() != input.numel() * getSize() ||
        output.scalar_type() != input.scalar_type() ||
        !output.is_contiguous() || !input.is_contiguous()) {
      return GlooForwarding::_allgather_base(output, input, options);
    }
    const at::Tensor flat = output.detach().view({getSize(), input.numel()});
    return gather_all(input.detach().view({input.numel()}), flat.unbind(),
                      options);
  }

  WorkPtr _reduce_scatter_base(
      at::Tensor& output, at::Tensor& input,
      const c10d::ReduceScatterOptions& options) override {
    // Gloo copies the sum, which turns the bytes of a bool into 0 or 1.
    if (!can_share_sum(input, options.reduceOp) ||
        input.scalar_type() == at::kBool ||
        output.scalar_type() != input.scalar_type() ||
        input.numel() != output.numel() * getSize() ||
        !output.is_contiguous() || !input.is_contiguous()) {
      return GlooForwarding::_reduce_scatter_base(output, input, options);
    }
    SharedRequest request = make_request(base::Collective::kReduceScatter,
                                         input.detach(), options.timeout);
    request.call.kind = SharedKind::kReduceScatter;
    request.call.reduction = *find_reduction(options.reduceOp);
    request.call.input = bytes_of(input);
    request.call.output = bytes_of(output);
    request.memory.push_back(output.detach());
    request.type = c10d::OpType::_REDUCE_SCATTER_BASE;
    request.title = "shared:reduce_scatter";
    request.result = {output};
    return start(std::move(request), options.asyncOp);
  }

  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    SharedRequest request = make_request(
        base::Collective::kBarrier, at::empty({0}, at::kByte), options.timeout);
    request.type = c10d::OpType::BARRIER;
    request.title = "shared:barrier";
    return start(std::move(request), options.asyncOp);
  }

  // The Reducer asks for its buckets here (DDP_DISABLE_COMM_MEM=0).
  bool supportsTensorAlloc(c10::DeviceIndex) override { return true; }

  at::Tensor allocateTensor(long size, at::TensorOptions options) override {
    const auto bytes =
        static_cast<size_t>(size) *
        c10::elementSize(c10::typeMetaToScalarType(options.dtype()));
    std::byte* memory =
        options.device().is_cpu() ? arena_->allocate(bytes) : nullptr;
    if (memory == nullptr) return at::empty({size}, options);
    return at::from_blob(
        memory, {size},
        [arena = arena_, memory](void*) { arena->free(memory); }, options);
  }

 private:
  SharedRequest make_request(base::Collective collective,
                             const at::Tensor& memory,
                             std::chrono::milliseconds timeout) const {
    SharedRequest request;
    request.collective = collective;
    request.call.element = *find_element(memory.scalar_type());
    request.call.bytes = memory.nbytes();
    request.memory = {memory};
    const auto limit = timeout == c10d::kUnsetTimeout ? timeout_ : timeout;
    request.timeout_ns = std::chrono::nanoseconds(limit).count();
    return request;
  }

  WorkPtr gather_all(const at::Tensor& input, const Tensors& outputs,
                     const c10d::AllgatherOptions& options) {
    const at::Tensor given = input.detach().contiguous();
    SharedRequest request =
        make_request(base::Collective::kAllGather, given, options.timeout);
    request.call.kind = SharedKind::kAllGather;
    request.call.input = bytes_of(given);
    Tensors taken;
    for (const at::Tensor& output : outputs) {
      taken.push_back(output.detach().contiguous());
      request.call.outputs.push_back(bytes_of(taken.back()));
    }
    request.type = c10d::OpType::ALLGATHER;
    request.title = "shared:all_gather";
    request.result = outputs;
    request.unpack = [taken, outputs] {
      for (size_t i = 0; i < outputs.size(); ++i) {
        copy_back(taken[i], outputs[i]);
      }
    };
    return start(std::move(request), options.asyncOp);
  }

  WorkPtr start(SharedRequest request, bool is_async) const {
    return SharedWork::start(group_, std::move(request), !is_async);
  }

  std::shared_ptr<SharedArena> arena_;
  std::chrono::milliseconds timeout_;
  std::shared_ptr<std::atomic<bool>> is_closed_ =
      std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<SharedGroup> group_;
};

}  // namespace

bool can_share(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided &&
         tensor.device().is_cpu() && find_element(tensor.scalar_type());
}

bool can_share_sum(const at::Tensor& tensor, const c10d::ReduceOp& op) {
  return can_share(tensor) && find_reduction(op) &&
         can_reduce(*find_element(tensor.scalar_type()));
}

c10::intrusive_ptr<c10d::Backend> make_shared_backend(
    SharedBackendConfig config) {
  return c10::make_intrusive<SharedBackend>(std::move(config));
}

}  // namespace lockstep::comm
