// `lockstep-prepare atlas`: converts data sets of other layouts to episodes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/base/workers.h"

namespace lockstep::conversion {

struct Prepared {
  std::string text = {};    // What was done, or the help that --help asks for.
  size_t num_rejected = 0;  // Episodes and files that could not be read.
};

// Writes {output}/{split}/episode_*/ (see datasets/episodes/episodes.h), with
// several processes, which are forked: the caller has one thread. Each episode
// appears whole or not at all; those that are there stay unless --overwrite is
// given, so that a run that was killed goes on. Episodes that cannot be read
// are listed in {output}/rejected.txt.
//
// Throws ConfigError for flags and inputs of other kinds, FormatError when no
// episode is left, IoError when something cannot be written.
Prepared prepare_atlas(const std::vector<std::string>& arguments,
                       const base::ShowProgress& progress = {});

}  // namespace lockstep::conversion
