#include "lockstep/tensor/stream_scope.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "lockstep/tensor/device.h"

namespace lockstep::tensor {

StreamScope::StreamScope(c10::Device device) : device_(device) {
  if (device.is_cpu()) return;
  synchronize(device);
  const c10::impl::VirtualGuardImpl guard(device.type());
  outer_ = guard.exchangeStream(
      guard.getStreamFromGlobalPool(device, /*isHighPriority=*/false));
}

StreamScope::~StreamScope() {
  if (!outer_) return;
  try {
    synchronize(device_);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // After an error of a kernel; it was reported where it was met.
  }
  c10::impl::VirtualGuardImpl(device_.type()).exchangeStream(*outer_);
}

}  // namespace lockstep::tensor
