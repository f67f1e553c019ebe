#include "fuzz/target.h"
#include "lockstep/formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lockstep::fuzz::read_or_refuse([&] {
    const auto content = lockstep::formats::read_safetensors(
        lockstep::fuzz::as_file(data, size));
    size_t num_bytes = 0;
    for (const auto& [name, tensor] : content.tensors) {
      num_bytes += lockstep::formats::packed_elements(tensor)->bytes().size();
    }
    lockstep::fuzz::require(num_bytes <= size);
  });
}
