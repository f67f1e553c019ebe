// The common settings as a command line gives them.
#pragma once

#include <string>
#include <vector>

#include "lockstep/config/parse.h"
#include "lockstep/engine/common_settings.h"
#include "lockstep/error.h"
#include "support/messages.h"

namespace lockstep::testing {

// Settings point into it: it stays where it is.
class Flags {
 public:
  explicit Flags(const std::vector<std::string>& words) {
    engine::describe_common(options, config);
    config::parse_command(options, words);
  }
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  TrainConfig config = {};
  Options options = {};
};

// The text of the ConfigError that `work` throws, empty without one.
template <typename Work>
std::string config_error(const Work& work) {
  try {
    work();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace lockstep::testing
