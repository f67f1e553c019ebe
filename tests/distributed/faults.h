// Starts a training of three ranks, one of which fails.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/messages.h"
#include "support/process.h"

namespace lockstep::testing {

// `fault`: see faults_worker.cpp.
inline ProcessResult train(const std::string& fault, int rank,
                           const std::vector<std::string>& options = {}) {
  std::vector<std::string> command = {
      LOCKSTEP_PROGRAM, "run", "--nproc-per-node=3", "--shutdown-timeout=2"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {FAULTS_WORKER, fault, std::to_string(rank)});
  return run(command);
}

inline void expect_verdict(const ProcessResult& result,
                           const std::string& cause,
                           const std::string& evidence) {
  const auto at = result.err.find("Verdict: " + cause + "\n");
  ASSERT_NE(at, std::string::npos) << cause << "\n" << result.err;
  expect_in(result.err.substr(at), evidence);
  expect_in(result.err.substr(at), "  next    : ");
}

}  // namespace lockstep::testing
