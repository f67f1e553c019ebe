// The ability to prepare data once, before training: `lockstep prepare`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/export.h"
#include "lockstep/options.h"

namespace lockstep {

// A recipe implements it in addition to Recipe: it needs no settings, data or
// model.
class LOCKSTEP_EXPORT Preparation {
 public:
  using Arguments = std::vector<std::string>;
  using Progress = std::function<void(int64_t done, int64_t total)>;

  virtual ~Preparation() = default;

  // Whether prepare() handles these arguments. If not, they are settings: a
  // task is built for Purpose::kPrepare and fills its feature cache. Default:
  // yes.
  virtual bool takes(const Arguments& /*arguments*/) const { return true; }

  // The flags of prepare(), for man pages and completions, bound to members of
  // the recipe. Default: none.
  virtual void describe_preparation(Options& /*options*/) {}

  // Called in one process. Returns a report for the console.
  virtual std::string prepare(const Arguments& arguments,
                              const Progress& progress) = 0;
};

}  // namespace lockstep
