#include "fuzz/target.h"
#include "lockstep/formats/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lockstep::fuzz::read_or_refuse([&] {
    for (const auto& [name, array] :
         lockstep::formats::read_npz(lockstep::fuzz::as_file(data, size))) {
      lockstep::formats::packed_elements(array);
    }
  });
}
