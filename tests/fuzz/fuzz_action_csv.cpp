#include "fuzz/target.h"
#include "lockstep/formats/action_csv.h"

// What is read can be written, and is then read again as the same numbers.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lockstep::fuzz::read_or_refuse([&] {
    const auto text = lockstep::fuzz::as_text(data, size);
    const auto actions = lockstep::formats::parse_action_csv(text, "a.csv");
    const std::string written = lockstep::formats::action_csv_text(actions);
    lockstep::fuzz::require(
        lockstep::formats::parse_action_csv(written, "b.csv") == actions);
  });
}
