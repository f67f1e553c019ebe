#include "fuzz/target.h"
#include "lockstep/config/parse.h"
#include "unit/config/sample_settings.h"

// A text that is refused changes no setting.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static lockstep::Sample sample;  // Takes long to make.
  sample.values = {};
  try {
    lockstep::config::apply_yaml_text(
        sample.options, lockstep::fuzz::as_text(data, size), "fuzz.yaml");
  } catch (const lockstep::ConfigError&) {
    lockstep::fuzz::require(sample.values == lockstep::SampleValues{});
  }
  return 0;
}
