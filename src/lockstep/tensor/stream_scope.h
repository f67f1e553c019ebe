// A stream of this thread's own, on a GPU.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <optional>

namespace lockstep::tensor {

// Within its scope this thread computes on a stream that is not the device's
// default stream, which CUDA graphs cannot capture. Gradients of parameters
// belong to the stream that was current when their model was wrapped by DDP: a
// training needs the scope around everything. Both ends wait for the device.
// On a CPU it does nothing.
class StreamScope {
 public:
  explicit StreamScope(c10::Device device);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  c10::Device device_;
  std::optional<c10::Stream> outer_;
};

}  // namespace lockstep::tensor
