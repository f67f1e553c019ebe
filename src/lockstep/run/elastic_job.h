// A job whose number of processes may change from start to start
// (--nnodes MIN:MAX): what stays as it was at its first start, and who may
// write to its run folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "lockstep/base/environment.h"
#include "lockstep/engine/batch_size.h"

namespace lockstep::run {

// Whether the launcher says so (LOCKSTEP_ELASTIC).
bool is_elastic(const base::Environment& environment);

struct FirstStart {
  int num_processes = 1;  // For --lr_scaling.
  int64_t global_batch = 1;
  int64_t micro_batch = 1;  // At most, on one process.

  bool operator==(const FirstStart&) const = default;
};

// A comment in the run's config: "# first start: 4 processes, ...".
std::string first_start_line(const FirstStart& first);
// No value if the config has no such line.
std::optional<FirstStart> read_first_start(const std::string& config);

// Lets only the newest start of a job write to its run folder. Two starts may
// run at a time when the network between their machines is cut.
class RunFence {
 public:
  // `number` grows with every start of the job (LOCKSTEP_GENERATION).
  RunFence(std::filesystem::path folder, std::string job, int64_t number);
  // No value in jobs that are not elastic.
  static std::optional<RunFence> from_environment(
      const std::filesystem::path& folder,
      const base::Environment& environment);

  // Writes the number down. Throws PeerError if a newer start has, and IoError.
  void claim() const;
  // Throws PeerError if a newer start has claimed the folder.
  void check() const;
  bool is_first_start() const { return number_ == 0; }

 private:
  std::filesystem::path file() const;

  std::filesystem::path folder_;
  std::string job_;
  int64_t number_ = 0;
};

}  // namespace lockstep::run
