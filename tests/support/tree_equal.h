// Compares trees value by value.
#pragma once

#include <string>

#include "lockstep/checkpoint.h"

namespace lockstep::testing {

// Fails the test with the path of each difference. Tensors must agree in type,
// shape, strides and every bit.
void expect_equal(const Tree& actual, const Tree& expected,
                  const std::string& path = "");

}  // namespace lockstep::testing
