// A moment in the work that is queued on a GPU.
#pragma once

#include <memory>

namespace lockstep::tensor {

struct FreeDeviceEvent {
  void operator()(void* event) const;
};
using DeviceEvent = std::unique_ptr<void, FreeDeviceEvent>;

// After what is queued on the current stream; while that is captured, in every
// replay. The time is kept.
DeviceEvent record_event();

// Throws what libtorch throws for an error on the device.
bool is_done(const DeviceEvent& event);

// Waits for the later one.
double seconds_between(const DeviceEvent& from, const DeviceEvent& to);

}  // namespace lockstep::tensor
