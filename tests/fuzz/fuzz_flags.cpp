#include "fuzz/target.h"
#include "lockstep/base/strings.h"
#include "lockstep/config/parse.h"
#include "unit/config/sample_settings.h"

// The input's lines are the words of a command. Words that are refused change
// no setting. Nothing is read from other folders, such as /dev, by --config.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = lockstep::fuzz::as_text(data, size);
  if (text.find('/') != std::string_view::npos) return -1;
  static lockstep::Sample sample;  // Takes long to make.
  sample.values = {};
  try {
    lockstep::config::parse_command(sample.options,
                                    lockstep::base::split(text, '\n'));
  } catch (const lockstep::ConfigError&) {
    lockstep::fuzz::require(sample.values == lockstep::SampleValues{});
  }
  return 0;
}
