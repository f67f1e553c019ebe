#include "fuzz/target.h"
#include "lockstep/formats/lzf.h"

// The first two bytes are the size of what comes out.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t expected = size_t{data[0]} | size_t{data[1]} << 8U;
  return lockstep::fuzz::read_or_refuse([&] {
    const auto bytes =
        lockstep::formats::decompress_lzf({data + 2, size - 2}, expected);
    lockstep::fuzz::require(bytes.size() == expected);
  });
}
