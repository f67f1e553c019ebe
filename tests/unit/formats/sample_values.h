// Values for the tests of formats, and a text that shows all of a value.
#pragma once

#include <string>
#include <vector>

#include "lockstep/formats/value.h"

namespace lockstep::testing {

// A row-major float32 tensor.
formats::TensorRecord float_tensor(std::vector<int64_t> shape,
                                   const std::vector<float>& elements);

// Every kind of value, tied and strided tensors among them.
formats::Value sample_value();

// Equal texts, equal values: kinds, numbers, shapes, strides, bytes, and which
// tensors share a storage.
std::string describe(const formats::Value& value);

}  // namespace lockstep::testing
