#include "fuzz/target.h"
#include "lockstep/formats/zip_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lockstep::fuzz::read_or_refuse([&] {
    const lockstep::formats::ZipReader zip(lockstep::fuzz::as_file(data, size));
    for (const lockstep::formats::ZipEntry& entry : zip.entries()) {
      lockstep::fuzz::require(zip.find(entry.name) == &entry);
      const auto content = zip.storage(entry);
      lockstep::fuzz::require(content->bytes().size() == entry.size);
      zip.read(entry);
    }
  });
}
