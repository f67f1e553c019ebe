#include "fuzz/target.h"
#include "lockstep/formats/torch_file.h"
#include "unit/formats/sample_values.h"

// Zip files, with checksums that stop most damage early, and the old format,
// which has none.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using lockstep::formats::TorchFileCheck;
  for (const auto check : {TorchFileCheck::kAll, TorchFileCheck::kStructure}) {
    lockstep::fuzz::read_or_refuse([&] {
      lockstep::testing::describe(lockstep::formats::read_torch_file(
          lockstep::fuzz::as_file(data, size), check));
    });
  }
  return 0;
}
