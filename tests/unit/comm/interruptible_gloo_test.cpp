#include "lockstep/comm/interruptible_gloo.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <future>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "lockstep/comm/gloo_backend.h"
#include "lockstep/error.h"

namespace lockstep::comm {
namespace {

using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using FuturePtr = c10::intrusive_ptr<c10::ivalue::Future>;
using Tensors = std::vector<at::Tensor>;

std::exception_ptr lost() {
  return std::make_exception_ptr(PeerError("rank 1 is lost"));
}

// Ends when the test says so.
class SlowWork final : public c10d::Work {
 public:
  explicit SlowWork(FuturePtr future) : future_(std::move(future)) {}
  FuturePtr getFuture() override { return future_; }

 private:
  FuturePtr future_;
};

// Its end waits like that of Gloo, whose threads wait for a send.
class SlowGloo final : public c10d::Backend {
 public:
  SlowGloo(FuturePtr future, std::future<void> may_end)
      : Backend(0, 2),
        future_(std::move(future)),
        may_end_(std::move(may_end)) {}
  ~SlowGloo() override { may_end_.wait(); }

  WorkPtr allreduce(Tensors&, const c10d::AllreduceOptions&) override {
    return c10::make_intrusive<SlowWork>(future_);
  }

 private:
  FuturePtr future_;
  std::future<void> may_end_;
};

class InterruptibleGlooTest : public ::testing::Test {
 protected:
  WorkPtr start() {
    return backend_->allreduce(tensors_, c10d::AllreduceOptions());
  }

  static void expect_lost(const WorkPtr& work) {
    EXPECT_THROW(work->wait(), PeerError);
    EXPECT_TRUE(work->getFuture()->completed());
    EXPECT_TRUE(work->getFuture()->hasError());
  }

  Tensors tensors_ = {torch::ones({3})};
  FuturePtr future_ =
      c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors());
  std::promise<void> may_end_;
  std::shared_ptr<OpenCollectives> collectives_ =
      std::make_shared<OpenCollectives>();
  BackendPtr backend_ = make_interruptible(
      c10::make_intrusive<SlowGloo>(future_, may_end_.get_future()),
      collectives_, std::make_shared<GlooEnds>());
};

TEST_F(InterruptibleGlooTest, ACollectiveEndsAsThatOfGlooDoes) {
  const WorkPtr work = start();
  EXPECT_FALSE(work->isCompleted());
  future_->markCompleted(c10::IValue(tensors_));
  EXPECT_TRUE(work->wait());
  EXPECT_TRUE(
      work->getFuture()->value().toTensorVector()[0].is_same(tensors_[0]));
  may_end_.set_value();
}

TEST_F(InterruptibleGlooTest, CollectivesUnderWayAndLaterOnesFail) {
  const WorkPtr before = start();
  collectives_->fail(lost());
  expect_lost(before);
  expect_lost(start());
  // Gloo's own end comes too late.
  future_->markCompleted(c10::IValue(tensors_));
  expect_lost(before);
  may_end_.set_value();
}

TEST_F(InterruptibleGlooTest, OneThatFailsTakesTheOthersAlong) {
  const WorkPtr first = start();
  auto other =
      c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors());
  std::promise<void> other_may_end;
  const BackendPtr second_group = make_interruptible(
      c10::make_intrusive<SlowGloo>(other, other_may_end.get_future()),
      collectives_, std::make_shared<GlooEnds>());
  const WorkPtr second =
      second_group->allreduce(tensors_, c10d::AllreduceOptions());
  other->setError(lost());
  expect_lost(second);
  expect_lost(first);
  future_->markCompleted(c10::IValue(tensors_));
  other_may_end.set_value();
  may_end_.set_value();
}

TEST_F(InterruptibleGlooTest, ItsEndDoesNotWaitForGlooThatHangs) {
  start();
  collectives_->fail(lost());
  backend_.reset();
  future_->markCompleted(c10::IValue(tensors_));
  may_end_.set_value();
}

// Two ranks of one process.
TEST(InterruptibleGloo, ARankThatWaitsForAnotherGetsTheError) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto connect = [&](int rank) {
    return make_gloo_backend(store, {.rank = rank, .world_size = 2},
                             {.name = "g", .timeout = std::chrono::hours(1)});
  };
  auto other = std::async(std::launch::async, connect, 1);
  const auto collectives = std::make_shared<OpenCollectives>();
  BackendPtr backend =
      make_interruptible(connect(0), collectives, std::make_shared<GlooEnds>());
  BackendPtr silent = other.get();
  Tensors sum = {torch::ones({1 << 22})};
  const WorkPtr work = backend->allreduce(sum, c10d::AllreduceOptions());
  collectives->fail(lost());
  EXPECT_THROW(work->wait(), PeerError);
  // Its thread still waits; that of the other end lets go of it.
  backend.reset();
  silent.reset();
}

}  // namespace
}  // namespace lockstep::comm
