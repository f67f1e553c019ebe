#include "lockstep/base/spare.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "lockstep/base/files.h"

namespace lockstep::base {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    read_end = FileDescriptor(ends[0]);
    write_end = FileDescriptor(ends[1]);
  }

  FileDescriptor read_end;
  FileDescriptor write_end;
};

// What arrives at the pipe when its text was written to this descriptor.
std::string through(const Pipe& pipe, int fd) {
  EXPECT_TRUE(write_all(fd, "text"));
  std::array<char, 4> bytes{};
  EXPECT_EQ(read(pipe.read_end.get(), bytes.data(), bytes.size()), 4);
  return {bytes.data(), bytes.size()};
}

class SpareSocket : public ::testing::Test {
 protected:
  SpareSocket() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()), 0);
    launcher_ = FileDescriptor(ends[0]);
    spare_ = FileDescriptor(ends[1]);
  }

  RankStart start() const {
    return {.arguments = {"train", "", "a b"},
            .environment = {{"EMPTY", ""}, {"TWO", "1=2\n3"}, {"FD", "77"}},
            .stdout_fd = out_.write_end.get(),
            .stderr_fd = err_.write_end.get(),
            .descriptors = {{"FD", other_.write_end.get()}}};
  }

  FileDescriptor launcher_;
  FileDescriptor spare_;
  Pipe out_;
  Pipe err_;
  Pipe other_;
};

TEST_F(SpareSocket, ARankStartArrivesAsItWasSent) {
  ASSERT_TRUE(send_rank_start(launcher_.get(), start()));
  const auto received = receive_rank_start(spare_.get());
  ASSERT_TRUE(received);
  EXPECT_EQ(received->arguments, start().arguments);
  Environment expected = start().environment;
  expected["FD"] = std::to_string(received->descriptors.at("FD"));
  EXPECT_EQ(received->environment, expected);
  const std::array<FileDescriptor, 3> owned = {
      FileDescriptor(received->stdout_fd), FileDescriptor(received->stderr_fd),
      FileDescriptor(received->descriptors.at("FD"))};
  EXPECT_EQ(through(out_, owned[0].get()), "text");
  EXPECT_EQ(through(err_, owned[1].get()), "text");
  EXPECT_EQ(through(other_, owned[2].get()), "text");
}

TEST_F(SpareSocket, NothingMayBeEmpty) {
  const RankStart bare{.stdout_fd = out_.write_end.get(),
                       .stderr_fd = err_.write_end.get()};
  ASSERT_TRUE(send_rank_start(launcher_.get(), bare));
  const auto received = receive_rank_start(spare_.get());
  ASSERT_TRUE(received);
  EXPECT_TRUE(received->arguments.empty());
  EXPECT_TRUE(received->environment.empty());
  close(received->stdout_fd);
  close(received->stderr_fd);
}

TEST_F(SpareSocket, TheLauncherLearnsWhichProcessWaits) {
  EXPECT_FALSE(waiting_spare(launcher_.get()));
  tell_waiting(spare_.get());
  EXPECT_EQ(waiting_spare(launcher_.get()), getpid());
  EXPECT_FALSE(waiting_spare(launcher_.get()));
}

TEST_F(SpareSocket, TheEndOfEitherSideIsNoticed) {
  EXPECT_FALSE(spare_has_ended(launcher_.get()));
  tell_waiting(spare_.get());
  EXPECT_FALSE(spare_has_ended(launcher_.get()));
  EXPECT_TRUE(waiting_spare(launcher_.get()));
  spare_.reset();
  EXPECT_TRUE(spare_has_ended(launcher_.get()));
  EXPECT_FALSE(waiting_spare(launcher_.get()));
  EXPECT_FALSE(send_rank_start(launcher_.get(), start()));
}

TEST_F(SpareSocket, WithoutALauncherNoRankStarts) {
  launcher_.reset();
  tell_waiting(spare_.get());
  EXPECT_FALSE(receive_rank_start(spare_.get()));
}

TEST_F(SpareSocket, AnEnvironmentThatNoMessageHoldsIsRefused) {
  RankStart large = start();
  large.environment["LARGE"] = std::string(size_t{64} << 20, 'x');
  EXPECT_FALSE(send_rank_start(launcher_.get(), large));
}

}  // namespace
}  // namespace lockstep::base
