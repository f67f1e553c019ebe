// Shim of gloo's header, which the wheel does not ship: as much as
// ProcessGroupGloo.hpp names. Objects of these types are only ever made inside
// libtorch.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gloo {

// Without virtual functions, as in gloo.
class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
