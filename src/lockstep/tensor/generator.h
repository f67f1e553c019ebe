// The generators that libtorch's random operations, such as dropout, draw from.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

namespace lockstep::tensor {

at::Generator device_generator(c10::Device device);

}  // namespace lockstep::tensor
