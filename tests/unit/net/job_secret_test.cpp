#include "lockstep/net/job_secret.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace lockstep {
namespace {

base::Environment names(int fd) {
  return {{net::kSecretVariable, std::to_string(fd)}};
}

TEST(JobSecret, IsFoundByItsDescriptorAndPort) {
  const net::JobSecret secret(4000);
  EXPECT_EQ(secret.text().size(), 32u);
  EXPECT_EQ(net::find_job_secret(names(secret.fd()), 4000), secret.text());
}

TEST(JobSecret, OfAnotherStoreIsNotUsed) {
  const net::JobSecret secret(4000);
  EXPECT_FALSE(net::find_job_secret(names(secret.fd()), 4001));
}

TEST(JobSecret, DiffersFromJobToJob) {
  EXPECT_NE(net::JobSecret(1).text(), net::JobSecret(1).text());
}

TEST(JobSecret, ADescriptorOfSomethingElseIsNone) {
  EXPECT_FALSE(net::find_job_secret({}, 1));
  EXPECT_FALSE(net::find_job_secret(names(999), 1));
  const base::FileDescriptor other(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(net::find_job_secret(names(other.get()), 1));
}

TEST(JobSecret, CannotBeChangedByAWorker) {
  const net::JobSecret secret(4000);
  EXPECT_LT(pwrite(secret.fd(), "x", 1, 0), 0);
  EXPECT_NE(ftruncate(secret.fd(), 0), 0);
}

}  // namespace
}  // namespace lockstep
