// `lockstep-prepare atlas`: turns data sets of other layouts into episodes.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/workers.h"

namespace lockstep {

// Writes {output}/{split}/episode_*/ (see recipes/atlas/episodes.h), with
// several threads. Each episode appears whole or not at all; those that are
// there stay unless --overwrite is given, so that a run that was killed goes
// on. Episodes that cannot be read are listed in {output}/rejected.txt.
//
// Returns what it did, or the help that --help asks for. Throws ConfigError for
// flags and inputs of other kinds, FormatError when no episode is left, IoError
// when something cannot be written.
std::string prepare_atlas(const std::vector<std::string>& arguments,
                          const ShowProgress& progress = {});

}  // namespace lockstep
