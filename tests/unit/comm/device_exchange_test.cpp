#include "lockstep/comm/device_exchange.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "lockstep/base/status.h"
#include "lockstep/comm/collective_gate.h"
#include "lockstep/comm/interrupt_watch.h"
#include "support/process.h"
#include "unit/base/status_environment.h"

namespace lockstep::comm {
namespace {

// Its abort ends when the test says so, as NCCL's does when no CUDA graph
// holds a collective any more.
class FakeNccl : public c10d::Backend {
 public:
  explicit FakeNccl(std::future<void> may_end)
      : Backend(0, 2), may_end_(std::move(may_end)) {}

  void abort() override {
    ++num_aborts;
    may_end_.wait();
  }

  std::atomic<int> num_aborts = 0;

 private:
  std::future<void> may_end_;
};

class DeviceExchangeTest : public ::testing::Test {
 protected:
  bool is_ending() const {
    return testing::wait_for([&] { return backend_->num_aborts > 0; }, 60);
  }

  std::promise<void> end_;
  c10::intrusive_ptr<FakeNccl> backend_ =
      c10::make_intrusive<FakeNccl>(end_.get_future());
  std::shared_ptr<DeviceExchange> exchange_ =
      std::make_shared<DeviceExchange>(backend_);
};

TEST_F(DeviceExchangeTest, AnAbortIsNotWaitedForBeforeItsEnd) {
  EXPECT_FALSE(exchange_->is_aborted());
  exchange_->abort();
  EXPECT_TRUE(exchange_->is_aborted());
  EXPECT_TRUE(is_ending());
  auto ended = std::async(std::launch::async, [&] { exchange_.reset(); });
  end_.set_value();
  ended.get();
}

TEST_F(DeviceExchangeTest, IsAbortedOnce) {
  exchange_->abort();
  exchange_->abort();
  end_.set_value();
  exchange_.reset();
  EXPECT_EQ(backend_->num_aborts, 1);
}

// Watched as a rank that recovers from memory watches it.
class WatchedExchangeTest : public DeviceExchangeTest {
 protected:
  void watch(std::function<bool()> has_one_let_go = {}) {
    watch_.connecting();
    watch_.connected(
        {.exchange = exchange_, .has_one_let_go = std::move(has_one_let_go)});
    EXPECT_FALSE(exchange_->is_aborted());
  }
  void expect_aborted() {
    EXPECT_TRUE(is_ending());
    EXPECT_TRUE(exchange_->is_aborted());
    end_.set_value();
  }

  base::StatusReader status_;
  base::RecoveryReader launcher_{status_.fd()};
  InterruptWatch watch_{
      base::RecoveryWriter::from_environment(testing::environment_of(status_))};
};

TEST_F(WatchedExchangeTest, AnInterruptOfTheLauncherAbortsIt) {
  watch();
  launcher_.suspend();
  expect_aborted();
}

TEST_F(WatchedExchangeTest, ANewGenerationAbortsIt) {
  watch();
  launcher_.announce(1);
  expect_aborted();
}

TEST_F(WatchedExchangeTest, ARankThatLetsGoAbortsIt) {
  std::atomic<bool> has_let_go = false;
  watch([&] { return has_let_go.load(); });
  has_let_go = true;
  expect_aborted();
}

TEST(CollectiveGateTest, NoCollectiveEntersOnceItIsShut) {
  CollectiveGate gate;
  EXPECT_NO_THROW(gate.enter());
  gate.shut();
  EXPECT_THROW(gate.enter(), PeerError);
}

TEST(CollectiveGateTest, ACollectiveThatIsStuckIsWaitedForOnlyAWhile) {
  CollectiveGate gate;
  const auto pass = gate.enter();
  const double begin = testing::now_seconds();
  std::async(std::launch::async, [&] { gate.shut(); }).get();
  EXPECT_GT(testing::now_seconds() - begin, 0.9);
}

}  // namespace
}  // namespace lockstep::comm
