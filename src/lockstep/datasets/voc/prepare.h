// `lockstep prepare scribble`: makes the maps of distances, once.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/workers.h"

namespace lockstep::voc {

// For every image of train.txt the map of distances from its scribbles and
// that from the outlines of its pseudo labels, with several threads. Maps that
// are there stay unless --overwrite is given, so that one that was stopped goes
// on. Returns what it did, or the help that --help asks for. Throws ConfigError
// for flags and missing files, FormatError and IoError with a file's path.
std::string prepare_scribble(const std::vector<std::string>& arguments,
                             const base::ShowProgress& progress = {});

}  // namespace lockstep::voc
