#include "lockstep/comm/interrupt_watch.h"

#include <gtest/gtest.h>

#include "lockstep/base/status.h"
#include "unit/base/status_environment.h"
#include "unit/comm/loopback_connection.h"

namespace lockstep::comm {
namespace {

using testing::LoopbackConnection;

class InterruptWatchTest : public ::testing::Test {
 protected:
  base::StatusReader status_;
  base::RecoveryReader launcher_{status_.fd()};
  InterruptWatch watch_{
      base::RecoveryWriter::from_environment(testing::environment_of(status_))};
};

TEST_F(InterruptWatchTest, AnInterruptEndsConnections) {
  const LoopbackConnection before;
  watch_.connecting();
  const LoopbackConnection connection;
  watch_.connected();
  EXPECT_FALSE(watch_.is_interrupted());
  EXPECT_TRUE(connection.is_open());
  launcher_.suspend();
  EXPECT_TRUE(watch_.is_interrupted());
  EXPECT_TRUE(connection.ends());
  EXPECT_TRUE(before.is_open());
}

TEST_F(InterruptWatchTest, AnInterruptEndsConnectionsThatAreBeingMade) {
  watch_.connecting();
  const LoopbackConnection connection;
  launcher_.suspend();
  EXPECT_TRUE(connection.ends());
}

TEST_F(InterruptWatchTest, AnInterruptIsNotForgottenUntilAllAreConnected) {
  watch_.connecting();
  launcher_.suspend();
  const LoopbackConnection connection;
  watch_.connected();
  EXPECT_FALSE(connection.is_open());
}

TEST_F(InterruptWatchTest, AnInterruptEndsTheConnectionToTheStore) {
  watch_.opening_store();
  const LoopbackConnection store;
  watch_.opened_store();
  watch_.connecting();
  const LoopbackConnection connection;
  watch_.connected();
  // The ranks that connect anew without the launcher meet there.
  watch_.let_go();
  EXPECT_FALSE(connection.is_open());
  EXPECT_TRUE(store.is_open());
  launcher_.suspend();
  EXPECT_TRUE(store.ends());
}

TEST_F(InterruptWatchTest, AClosedStoreIsForgotten) {
  watch_.opening_store();
  const LoopbackConnection store;
  watch_.opened_store();
  watch_.closed_store();
  watch_.connecting();
  const LoopbackConnection connection;
  watch_.connected();
  launcher_.suspend();
  EXPECT_TRUE(connection.ends());
  EXPECT_TRUE(store.is_open());
}

TEST_F(InterruptWatchTest, OlderInterruptsAreNotAboutNewConnections) {
  launcher_.suspend();
  EXPECT_TRUE(watch_.is_interrupted());
  watch_.follow();
  EXPECT_FALSE(watch_.is_interrupted());
  watch_.connecting();
  const LoopbackConnection connection;
  watch_.connected();
  EXPECT_TRUE(connection.is_open());
  launcher_.suspend();
  EXPECT_TRUE(watch_.is_interrupted());
  EXPECT_TRUE(connection.ends());
}

TEST_F(InterruptWatchTest, WhoLetsGoEndsItsConnections) {
  const LoopbackConnection before;
  watch_.connecting();
  const LoopbackConnection connection;
  watch_.connected();
  watch_.let_go();
  EXPECT_FALSE(connection.is_open());
  EXPECT_TRUE(before.is_open());
  EXPECT_FALSE(watch_.is_interrupted());
}

}  // namespace
}  // namespace lockstep::comm
