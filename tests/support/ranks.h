// Tests that need several ranks: the test program starts itself once per rank.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lockstep/world.h"

namespace lockstep::testing {

struct RankOptions {
  int size = 2;
  int expected_exit_code = 0;
  std::map<std::string, std::string> environment = {};
  std::vector<std::string> launcher_options = {};
  DeviceChoice device = DeviceChoice::kCpu;
  double timeout_seconds = 240;
};

// In the test itself: starts this test on `size` ranks under `lockstep run`,
// checks the exit code, returns what they printed. In a rank: runs `body` on a
// CPU world and ends the test. Expectations that fail in a rank fail the test.
std::string run_ranks(const RankOptions& options,
                      const std::function<void(const World&)>& body);

// The same without joining a world first.
std::string run_processes(const RankOptions& options,
                          const std::function<void()>& body);

}  // namespace lockstep::testing
