// `lockstep prepare scribble`: makes the maps of distances, once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/workers.h"
#include "lockstep/datasets/voc/distance_map.h"
#include "lockstep/datasets/voc/voc_set.h"
#include "lockstep/options.h"

namespace lockstep::voc {

struct VocPrepareConfig {
  ScribbleDataConfig data = {};
  double lambda_s = kScribbleLambda;
  double lambda_c = kOutlineLambda;
  int64_t workers = 0;  // 0: one per processor.
  bool overwrite = false;
};

// The flags of prepare_scribble(). The config must outlive the options.
void describe_prepare_flags(Options& options, VocPrepareConfig& config);

// For every image of train.txt the map of distances from its scribbles and
// that from the outlines of its pseudo labels, with several threads. Maps that
// are there stay unless --overwrite is given, so that one that was stopped goes
// on. Returns what it did, or the help that --help asks for. Throws ConfigError
// for flags and missing files, FormatError and IoError with a file's path.
std::string prepare_scribble(const std::vector<std::string>& arguments,
                             const base::ShowProgress& progress = {});

}  // namespace lockstep::voc
