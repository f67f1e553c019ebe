#include "lockstep/comm/interruptible_gloo.h"

#include <ATen/core/ivalue.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

#include "lockstep/comm/gloo_forwarding.h"

namespace lockstep::comm {
namespace {

constexpr std::chrono::milliseconds kPatience{500};

// Ends with the work of Gloo, or before.
class InterruptibleWork final : public c10d::Work {
 public:
  using FuturePtr = c10::intrusive_ptr<c10::ivalue::Future>;

  InterruptibleWork(c10::intrusive_ptr<c10d::Work> inner, int rank,
                    const FuturePtr& done,
                    std::shared_ptr<OpenCollectives> collectives)
      : Work(rank),
        inner_(std::move(inner)),
        future_(c10::make_intrusive<c10::ivalue::Future>(done->elementType())),
        collectives_(std::move(collectives)) {}

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    return future_;
  }
  std::vector<at::Tensor> result() override { return inner_->result(); }

  void take(c10::ivalue::Future& done) {
    if (done.hasError()) {
      collectives_->fail(done.exception_ptr());
    } else if (!is_over_.exchange(true)) {
      collectives_->remove(this);
      Work::finish();
      future_->markCompleted(done.value());
    }
  }

  void fail(const std::exception_ptr& error) {
    if (is_over_.exchange(true)) return;
    Work::finish(error);
    future_->setError(error);
  }

 private:
  c10::intrusive_ptr<c10d::Work> inner_;
  FuturePtr future_;
  std::shared_ptr<OpenCollectives> collectives_;
  std::atomic<bool> is_over_ = false;
};

class InterruptibleGloo final : public GlooForwarding {
 public:
  InterruptibleGloo(const c10::intrusive_ptr<c10d::Backend>& gloo,
                    std::shared_ptr<OpenCollectives> collectives,
                    std::shared_ptr<GlooEnds> ends)
      : GlooForwarding(gloo->getRank(), gloo->getSize(), gloo),
        collectives_(std::move(collectives)),
        ends_(std::move(ends)) {}

  ~InterruptibleGloo() override {
    if (collectives_->have_failed()) ends_->end(take_gloo());
  }

  const std::string getBackendName() const override { return "gloo"; }

  WorkPtr broadcast(Tensors& tensors,
                    const c10d::BroadcastOptions& options) override {
    return follow(GlooForwarding::broadcast(tensors, options));
  }
  WorkPtr allreduce(Tensors& tensors,
                    const c10d::AllreduceOptions& options) override {
    return follow(GlooForwarding::allreduce(tensors, options));
  }
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override {
    return follow(GlooForwarding::allgather(outputs, inputs, options));
  }
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override {
    return follow(GlooForwarding::_allgather_base(output, input, options));
  }

 private:
  WorkPtr follow(const WorkPtr& inner) {
    const auto done = inner->getFuture();
    auto work = c10::make_intrusive<InterruptibleWork>(inner, getRank(), done,
                                                       collectives_);
    collectives_->add(work.get(), [work](const std::exception_ptr& error) {
      work->fail(error);
    });
    done->addCallback(
        [work](c10::ivalue::Future& future) { work->take(future); });
    return work;
  }

  std::shared_ptr<OpenCollectives> collectives_;
  std::shared_ptr<GlooEnds> ends_;
};

}  // namespace

GlooEnds::~GlooEnds() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (const auto& end : under_way_) end.wait_until(deadline);
}

void GlooEnds::end(c10::intrusive_ptr<c10d::Backend> gloo) {
  std::promise<void> promise;
  const std::lock_guard lock(mutex_);
  std::erase_if(under_way_, [](const std::future<void>& end) {
    return end.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  under_way_.push_back(promise.get_future());
  std::thread([gloo = std::move(gloo), promise = std::move(promise)]() mutable {
    gloo.reset();
    promise.set_value();
  }).detach();
}

void OpenCollectives::fail(const std::exception_ptr& error) {
  std::map<const void*, Fail> works;
  std::exception_ptr first;
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    first = error_;
    works.swap(works_);
  }
  for (const auto& [work, fail] : works) fail(first);
}

bool OpenCollectives::have_failed() const {
  const std::lock_guard lock(mutex_);
  return error_ != nullptr;
}

void OpenCollectives::add(const void* work, Fail fail) {
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    if (!error_) {
      works_.emplace(work, std::move(fail));
      return;
    }
    error = error_;
  }
  fail(error);
}

void OpenCollectives::remove(const void* work) {
  Fail last;
  const std::lock_guard lock(mutex_);
  const auto found = works_.find(work);
  if (found == works_.end()) return;
  last = std::move(found->second);
  works_.erase(found);
}

c10::intrusive_ptr<c10d::Backend> make_interruptible(
    const c10::intrusive_ptr<c10d::Backend>& gloo,
    std::shared_ptr<OpenCollectives> collectives,
    std::shared_ptr<GlooEnds> ends) {
  return c10::make_intrusive<InterruptibleGloo>(gloo, std::move(collectives),
                                                std::move(ends));
}

}  // namespace lockstep::comm
