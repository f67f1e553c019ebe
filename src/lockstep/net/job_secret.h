// The secret of a job, known to its launcher and its ranks: a sealed memory
// file whose descriptor the workers inherit, so neither environment nor command
// line shows it.
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/base/files.h"

namespace lockstep::net {

constexpr const char* kSecretVariable = "LOCKSTEP_SECRET_FD";

class JobSecret {
 public:
  // Random, for the store at this port. Throws IoError.
  explicit JobSecret(int port);
  // That of a store on another node.
  JobSecret(int port, std::string text);

  const std::string& text() const { return text_; }
  int fd() const { return fd_.get(); }

 private:
  std::string text_;
  base::FileDescriptor fd_;
};

// The secret of the store at `port`, read from the descriptor that the
// environment names. No value without one, when it was closed on the way to
// this program, or when it is that of another store.
std::optional<std::string> find_job_secret(const base::Environment& environment,
                                           int port);

}  // namespace lockstep::net
