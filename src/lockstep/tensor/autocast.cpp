#include "lockstep/tensor/autocast.h"

#include <ATen/autocast_mode.h>

namespace lockstep::tensor {

Autocast::Autocast(c10::DeviceType device, std::optional<c10::ScalarType> dtype)
    : device_(device) {
  if (!dtype) return;
  saved_ = {.is_enabled = at::autocast::is_autocast_enabled(device),
            .dtype = at::autocast::get_autocast_dtype(device)};
  const bool is_enabled = *dtype != c10::ScalarType::Float;
  at::autocast::set_autocast_enabled(device, is_enabled);
  if (is_enabled) at::autocast::set_autocast_dtype(device, *dtype);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!saved_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, saved_->is_enabled);
  at::autocast::set_autocast_dtype(device_, saved_->dtype);
}

}  // namespace lockstep::tensor
