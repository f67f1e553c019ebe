#include "fuzz/target.h"
#include "lockstep/formats/pickle_reader.h"
#include "lockstep/formats/pickle_writer.h"
#include "unit/formats/sample_values.h"

namespace {

using lockstep::ByteStorage;

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
    lockstep::ByteReader in(std::as_bytes(std::span(data, size)));
    const lockstep::Value value = lockstep::read_pickle(in, make_storage);
    lockstep::testing::describe(value);
    const lockstep::Pickle again = lockstep::write_pickle(value);
    try {
      lockstep::ByteReader written(lockstep::as_bytes(again.bytes));
      lockstep::read_pickle(written, make_storage);
    } catch (const lockstep::Error&) {
      lockstep::fuzz::require(false);
    }
  });
}
