// Shim of gloo's header; see gloo/context.h.
#pragma once

#include <memory>

namespace gloo::transport {

class Device {
 public:
  virtual ~Device() = default;
};

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = default;
};

}  // namespace gloo::transport
