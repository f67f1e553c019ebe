#include "lockstep/tensor/generator.h"

#include <ATen/Context.h>

namespace lockstep::tensor {

at::Generator device_generator(c10::Device device) {
  return at::globalContext().defaultGenerator(device);
}

}  // namespace lockstep::tensor
