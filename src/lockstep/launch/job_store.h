// The store of one attempt of a job, served beside the keeper's own loop.
#pragma once

#include <string>
#include <vector>

#include "lockstep/launch/port.h"
#include "lockstep/net/job_secret.h"
#include "lockstep/net/store_server.h"

namespace lockstep::launch {

// Serves processes of this user, or of all nodes, from a thread until its
// destruction. Ranks that inherit the secret have private keys.
class JobStore {
 public:
  // The socket must outlive it. Throws IoError.
  JobStore(const StoreSocket& socket, net::Admission admission);

  // For the workers to inherit.
  int secret_fd() const { return secret_.fd(); }
  const std::string& secret() const { return secret_.text(); }

  // Lines for the user about clients that were refused, since the last call.
  std::vector<std::string> take_notices() { return server_.take_notices(); }

 private:
  net::JobSecret secret_;
  net::StoreServer server_;
};

}  // namespace lockstep::launch
