#include "lockstep/comm/device_exchange.h"

#include <c10/util/Exception.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>

namespace lockstep::comm {

DeviceExchange::DeviceExchange(c10::intrusive_ptr<c10d::Backend> backend)
    : backend_(std::move(backend)) {}

DeviceExchange::~DeviceExchange() {
  if (aborting_.joinable()) aborting_.join();
}

void DeviceExchange::abort() {
  if (is_aborted_.exchange(true)) return;
  aborting_ = std::thread([backend = backend_] {
    try {
      backend->abort();
    } catch (const std::exception& error) {
      TORCH_WARN("the exchange between GPUs was not ended cleanly: ",
                 error.what());
    }
  });
}

}  // namespace lockstep::comm
