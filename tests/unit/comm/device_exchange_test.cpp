#include "lockstep/comm/device_exchange.h"

#include <gtest/gtest.h>

#include <atomic>
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

TEST_F(DeviceExchangeTest, AnInterruptOfTheLauncherAbortsIt) {
  const base::StatusReader status;
  const base::RecoveryReader launcher(status.fd());
  InterruptWatch watch(
      base::RecoveryWriter::from_environment(testing::environment_of(status)));
  watch.connecting();
  watch.connected({.exchange = exchange_});
  EXPECT_FALSE(exchange_->is_aborted());
  launcher.suspend();
  EXPECT_TRUE(is_ending());
  EXPECT_TRUE(exchange_->is_aborted());
  end_.set_value();
}

TEST_F(DeviceExchangeTest, ANewGenerationAbortsIt) {
  const base::StatusReader status;
  const base::RecoveryReader launcher(status.fd());
  InterruptWatch watch(
      base::RecoveryWriter::from_environment(testing::environment_of(status)));
  watch.connecting();
  watch.connected({.exchange = exchange_});
  launcher.announce(1);
  EXPECT_TRUE(is_ending());
  end_.set_value();
}

TEST_F(DeviceExchangeTest, ARankThatLetsGoAbortsIt) {
  const base::StatusReader status;
  InterruptWatch watch(
      base::RecoveryWriter::from_environment(testing::environment_of(status)));
  std::atomic<bool> has_let_go = false;
  watch.connecting();
  watch.connected({.exchange = exchange_,
                   .has_one_let_go = [&] { return has_let_go.load(); }});
  EXPECT_FALSE(exchange_->is_aborted());
  has_let_go = true;
  EXPECT_TRUE(is_ending());
  end_.set_value();
}

TEST(CollectiveGateTest, NoCollectiveEntersOnceItIsShut) {
  CollectiveGate gate;
  EXPECT_NO_THROW(gate.enter());
  gate.shut();
  EXPECT_THROW(gate.enter(), PeerError);
}

TEST(CollectiveGateTest, IsNotShutWhileACollectiveIsQueued) {
  CollectiveGate gate;
  std::atomic<bool> is_queued = false;
  auto pass = gate.enter();
  auto shutting = std::async(std::launch::async, [&] {
    gate.shut();
    return is_queued.load();
  });
  is_queued = true;
  pass.unlock();
  EXPECT_TRUE(shutting.get());
}

TEST(CollectiveGateTest, IsShutAlthoughACollectiveIsStuck) {
  CollectiveGate gate;
  const auto pass = gate.enter();
  std::async(std::launch::async, [&] { gate.shut(); }).get();
}

}  // namespace
}  // namespace lockstep::comm
