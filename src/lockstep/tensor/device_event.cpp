#include "lockstep/tensor/device_event.h"

#include "lockstep/tensor/cuda_library.h"

namespace lockstep::tensor {

void FreeDeviceEvent::operator()(void* event) const {
  cuda_function<void(void*)>("lockstep_cuda_free_event")(event);
}

DeviceEvent record_event() {
  return DeviceEvent(cuda_function<void*()>("lockstep_cuda_record_event")());
}

bool is_done(const DeviceEvent& event) {
  return cuda_function<bool(void*)>("lockstep_cuda_is_event_done")(event.get());
}

double seconds_between(const DeviceEvent& from, const DeviceEvent& to) {
  return cuda_function<double(void*, void*)>("lockstep_cuda_seconds_between")(
      from.get(), to.get());
}

}  // namespace lockstep::tensor
