#include "lockstep/nodes/refusal_log.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace lockstep {
namespace {

using Lines = std::vector<std::string>;

bool is_readable(int fd) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&entry, 1, 0) == 1;
}

TEST(RefusalLog, NamesTheFirstOfEachReasonAtOnceAndCountsTheOthers) {
  nodes::RefusalLog log;
  EXPECT_FALSE(is_readable(log.fd()));
  log.add("strange bytes", "10.0.0.1");
  EXPECT_TRUE(is_readable(log.fd()));
  for (int i = 0; i < 3; ++i) log.add("strange bytes", "10.0.0.2");
  EXPECT_EQ(log.take_first(),
            (Lines{"refused a connection at the launchers' port (from "
                   "10.0.0.1): strange bytes"}));
  EXPECT_FALSE(is_readable(log.fd()));
  log.add("strange bytes", "10.0.0.2");
  EXPECT_FALSE(is_readable(log.fd()));
  EXPECT_EQ(log.take_first(), Lines{});
  log.add("another job", "10.0.0.3");
  EXPECT_EQ(log.take_all(),
            (Lines{"refused a connection at the launchers' port (from "
                   "10.0.0.3): another job",
                   "refused 4 more connections at the launchers' port: strange "
                   "bytes"}));
  EXPECT_EQ(log.take_all(), Lines{});
  log.add("another job", "10.0.0.3");
  EXPECT_EQ(log.take_all(), (Lines{"refused 1 more connection at the "
                                   "launchers' port: another job"}));
}

}  // namespace
}  // namespace lockstep
