#include "fuzz/target.h"
#include "lockstep/formats/pickle_reader.h"
#include "lockstep/formats/pickle_writer.h"
#include "unit/formats/sample_values.h"

namespace {

using lockstep::formats::ByteStorage;

std::shared_ptr<const ByteStorage> make_storage(std::string_view key,
                                                int64_t num_bytes) {
  // Larger than any input: what is read is written whole and read again.
  if (num_bytes > 100'000) {
    throw lockstep::FormatError("no storage '" + std::string(key) + "'");
  }
  return ByteStorage::own(
      std::vector<std::byte>(static_cast<size_t>(num_bytes)));
}

}  // namespace

// What can be read and written can be read again.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lockstep::fuzz::read_or_refuse([&] {
    lockstep::formats::ByteReader in(std::as_bytes(std::span(data, size)));
    const lockstep::formats::Value value =
        lockstep::formats::read_pickle(in, make_storage);
    lockstep::testing::describe(value);
    const lockstep::formats::Pickle again =
        lockstep::formats::write_pickle(value);
    try {
      lockstep::formats::ByteReader written(
          lockstep::formats::as_bytes(again.bytes));
      lockstep::formats::read_pickle(written, make_storage);
    } catch (const lockstep::Error&) {
      lockstep::fuzz::require(false);
    }
  });
}
