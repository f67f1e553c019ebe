#include "lockstep/comm/hierarchical_backend.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <functional>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "lockstep/base/strings.h"
#include "lockstep/comm/explain.h"
#include "lockstep/comm/gloo_forwarding.h"
#include "lockstep/comm/shared_backend.h"
#include "lockstep/comm/shared_queue.h"
#include "lockstep/error.h"

namespace lockstep::comm {
namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

// A leader finds out first that another machine is late, and tells its own.
constexpr std::chrono::seconds kTimeForLeader{10};

// To a tensor that is not contiguous.
void copy_if_moved(const at::Tensor& from, const at::Tensor& to) {
  if (!from.is_alias_of(to)) to.detach().copy_(from);
}

struct Request {
  base::Collective collective = base::Collective::kNone;
  c10d::OpType type = c10d::OpType::UNKNOWN;
  const char* title = nullptr;  // For the profiler.
  Tensors tensors = {};
  std::function<void()> run = [] {};
};

// The queue that runs requests, and where they are noted.
struct Line {
  int rank = 0;
  base::StatusWriter status = {};
  SharedQueue queue;
};

class LineWork final : public c10d::Work, public SharedTask {
 public:
  LineWork(std::shared_ptr<Line> line, Request request)
      : Work(line->rank, request.type, request.title, request.tensors),
        line_(std::move(line)),
        request_(std::move(request)),
        future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::ofTensors())) {
    int64_t bytes = 0;
    for (const at::Tensor& tensor : request_.tensors) {
      bytes += static_cast<int64_t>(tensor.nbytes());
    }
    number_ = line_->status.start_collective(request_.collective, bytes);
  }

  bool wait(std::chrono::milliseconds) override {
    line_->queue.wait(*this);
    const std::lock_guard lock(mutex_);
    if (exception_) std::rethrow_exception(exception_);
    return true;
  }
  Tensors result() override { return request_.tensors; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    return future_;
  }

  void begin() noexcept override {}

  void finish(WaitStyle) noexcept override {
    std::exception_ptr error;
    try {
      request_.run();
    } catch (...) {
      error = std::current_exception();
    }
    if (error) {
      line_->status.fail_collective(number_);
    } else {
      line_->status.finish_collective();
    }
    Work::finish(error);
    if (error) {
      future_->setError(error);
    } else {
      future_->markCompleted(c10::IValue(request_.tensors));
    }
  }

 private:
  std::shared_ptr<Line> line_;
  Request request_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  int64_t number_ = 0;  // On the status page.
};

// The steps of a collective. They outlive the backend: a queue finishes what it
// has begun.
class Steps {
 public:
  explicit Steps(const HierarchicalBackendConfig& config)
      : rank_(config.rank),
        machines_(config.machines),
        machine_(machines_.machine_of(rank_)),
        arena_(config.arena),
        leaders_(config.leaders),
        timeout_(config.timeout) {
    if (arena_ == nullptr) return;
    local_ = make_shared_backend({.arena = arena_,
                                  .channel = 0,
                                  .timeout = timeout_,
                                  .status = config.status});
  }

  const BackendPtr& local() const { return local_; }
  const Machines& machines() const { return machines_; }
  int machine() const { return machine_; }

  void reduce_on_machine(at::Tensor tensor,
                         c10d::AllreduceOptions options) const {
    if (local_ == nullptr) return;
    options.asyncOp = false;
    Tensors tensors = {std::move(tensor)};
    local_->allreduce(tensors, options)->wait();
  }

  void broadcast_on_machine(at::Tensor tensor, int from) const {
    if (local_ == nullptr) return;
    c10d::BroadcastOptions options;
    options.rootRank = from;
    options.asyncOp = false;
    options.timeout = timeout_ + kTimeForLeader;
    Tensors tensors = {std::move(tensor)};
    local_->broadcast(tensors, options)->wait();
  }

  // Between the leaders; nothing on other ranks. When it fails, the ranks that
  // wait for their leader learn why.
  void between_machines(
      const std::function<WorkPtr(c10d::Backend&)>& call) const {
    if (leaders_ == nullptr) return;
    try {
      call(*leaders_)->wait();
    } catch (const std::exception& error) {
      const bool is_late =
          recognise(error_text(error)).kind == FaultKind::kTimeout;
      const Failure failure{
          .kind = is_late ? FailureKind::kTimeout : FailureKind::kPeer,
          .text = fmt::format("between machines, on rank {}: {}", rank_,
                              error_text(error))};
      if (arena_ != nullptr) arena_->record_failure(failure);
      throw_failure(failure);
    }
  }

 private:
  int rank_;
  Machines machines_;
  int machine_;
  std::shared_ptr<SharedArena> arena_;
  BackendPtr leaders_;
  std::chrono::milliseconds timeout_;
  BackendPtr local_;
};

class HierarchicalBackend final : public GlooForwarding {
 public:
  HierarchicalBackend(const HierarchicalBackendConfig& config, int size)
      : GlooForwarding(config.rank, size, config.gloo),
        steps_(std::make_shared<Steps>(config)) {
    line_->rank = config.rank;
    line_->status = config.status;
  }

  ~HierarchicalBackend() override { line_->queue.end(); }

  const std::string getBackendName() const override { return "hierarchical"; }

  WorkPtr allreduce(Tensors& tensors,
                    const c10d::AllreduceOptions& options) override {
    if (tensors.size() != 1 || tensors[0].numel() == 0 ||
        !can_share_sum(tensors[0], options.reduceOp)) {
      return GlooForwarding::allreduce(tensors, options);
    }
    const at::Tensor tensor = tensors[0].detach().contiguous();
    return start({.collective = base::Collective::kAllReduce,
                  .type = c10d::OpType::ALLREDUCE,
                  .title = "hierarchical:all_reduce",
                  .tensors = tensors,
                  .run =
                      [steps = steps_, tensor, to = tensors[0], options] {
                        steps->reduce_on_machine(tensor, options);
                        steps->between_machines([&](c10d::Backend& leaders) {
                          Tensors own = {tensor};
                          return leaders.allreduce(own, options);
                        });
                        steps->broadcast_on_machine(tensor, 0);
                        copy_if_moved(tensor, to);
                      }},
                 options.asyncOp);
  }

  WorkPtr broadcast(Tensors& tensors,
                    const c10d::BroadcastOptions& options) override {
    if (tensors.size() != 1 || !can_share(tensors[0]) ||
        tensors[0].numel() == 0 || options.rootRank < 0 ||
        options.rootRank >= getSize()) {
      return GlooForwarding::broadcast(tensors, options);
    }
    const at::Tensor tensor = tensors[0].detach().contiguous();
    const auto root = static_cast<int>(options.rootRank);
    return start({.collective = base::Collective::kBroadcast,
                  .type = c10d::OpType::BROADCAST,
                  .title = "hierarchical:broadcast",
                  .tensors = tensors,
                  .run =
                      [steps = steps_, tensor, to = tensors[0], root] {
                        const int from = steps->machines().machine_of(root);
                        const bool is_source = steps->machine() == from;
                        if (is_source) {
                          steps->broadcast_on_machine(
                              tensor, steps->machines().local_rank(root));
                        }
                        steps->between_machines([&](c10d::Backend& leaders) {
                          c10d::BroadcastOptions between;
                          between.rootRank = from;
                          Tensors own = {tensor};
                          return leaders.broadcast(own, between);
                        });
                        if (!is_source) steps->broadcast_on_machine(tensor, 0);
                        copy_if_moved(tensor, to);
                      }},
                 options.asyncOp);
  }

  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    return start({.collective = base::Collective::kBarrier,
                  .type = c10d::OpType::BARRIER,
                  .title = "hierarchical:barrier",
                  .run =
                      [steps = steps_] {
                        const at::Tensor nothing = at::zeros({1}, at::kByte);
                        steps->reduce_on_machine(nothing, {});
                        steps->between_machines([](c10d::Backend& leaders) {
                          return leaders.barrier({});
                        });
                        steps->broadcast_on_machine(nothing, 0);
                      }},
                 options.asyncOp);
  }

  // DDP's buckets lie where the ranks of the machine add them.
  bool supportsTensorAlloc(c10::DeviceIndex) override { return true; }
  at::Tensor allocateTensor(long size, at::TensorOptions options) override {
    return steps_->local() != nullptr
               ? steps_->local()->allocateTensor(size, options)
               : at::empty({size}, options);
  }

 private:
  WorkPtr start(Request request, bool is_async) {
    auto work = c10::make_intrusive<LineWork>(line_, std::move(request));
    // The queue keeps the work alive, also when nobody else does.
    const auto owner = std::make_shared<c10::intrusive_ptr<LineWork>>(work);
    const std::shared_ptr<SharedTask> task(owner, work.get());
    if (is_async) {
      line_->queue.add(task);
    } else {
      line_->queue.run_now(task);
    }
    return work;
  }

  std::shared_ptr<Steps> steps_;
  std::shared_ptr<Line> line_ = std::make_shared<Line>();
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_hierarchical_backend(
    const HierarchicalBackendConfig& config) {
  int size = 0;
  for (int machine = 0; machine < config.machines.count(); ++machine) {
    size += static_cast<int>(config.machines.ranks_of(machine).size());
  }
  return c10::make_intrusive<HierarchicalBackend>(config, size);
}

}  // namespace lockstep::comm
