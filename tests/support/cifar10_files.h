// Small files in the layouts of CIFAR-10. Image i has label i % 10.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::testing {

// The 3072 bytes of an image.
std::string cifar10_pixels(int64_t index);

// Images `begin` to `end`, the latter not included.
std::string cifar10_binary(int64_t begin, int64_t end);

// The same as Python 2 pickled them: opcode by opcode, without numpy.
std::string cifar10_python(int64_t begin, int64_t end);

// The same with bytes as keys, as Python 3 pickles what it has loaded with
// encoding="bytes".
std::string cifar10_python_with_bytes(int64_t begin, int64_t end);

}  // namespace lockstep::testing
