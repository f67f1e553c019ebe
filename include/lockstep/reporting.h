// The ability to write the results of `lockstep eval` as files.
#pragma once

#include <vector>

#include "lockstep/export.h"
#include "lockstep/metrics.h"
#include "lockstep/output_file.h"

namespace lockstep {

// A task implements it in addition to Task.
class LOCKSTEP_EXPORT Reporting {
 public:
  virtual ~Reporting() = default;

  // Called once, on rank 0, with the totals of all ranks. Unlike samples, files
  // of a report may have absolute names, where a setting of the recipe says so.
  virtual std::vector<OutputFile> report(const Metrics& metrics,
                                         const MetricCounts& counts) = 0;
};

}  // namespace lockstep
