#include "lockstep/launch/job_store.h"

#include <sys/resource.h>

#include <algorithm>

namespace lockstep::launch {
namespace {

// The keeper needs descriptors itself, for pipes and log files.
net::StoreLimits limits_of_keeper() {
  net::StoreLimits limits;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 &&
      files.rlim_cur != RLIM_INFINITY) {
    limits.max_connections =
        std::min<size_t>(limits.max_connections, files.rlim_cur / 2);
  }
  return limits;
}

}  // namespace

JobStore::JobStore(const StoreSocket& socket, net::Admission admission)
    : secret_(socket.port()),
      server_(socket.listener(), {.limits = limits_of_keeper(),
                                  .admission = admission,
                                  .secret = secret_.text()}) {}

}  // namespace lockstep::launch
