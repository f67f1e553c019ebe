#include "fuzz/target.h"
#include "lockstep/formats/weight_index.h"

// No name leads out of the folder.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lockstep::fuzz::read_or_refuse([&] {
    const auto index = lockstep::formats::parse_weight_index(
        lockstep::fuzz::as_text(data, size));
    for (const auto& [name, file] : index) {
      lockstep::fuzz::require(!file.empty() && file != ".." &&
                              file.find('/') == std::string::npos);
    }
  });
}
