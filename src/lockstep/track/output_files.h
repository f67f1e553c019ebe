// Files that a run makes on its way: images of samples.
#pragma once

#include <filesystem>
#include <functional>

#include "lockstep/track/tracker.h"

namespace lockstep::track {

struct OutputFilesConfig {
  std::filesystem::path folder = {};
  // On the recorder's thread, after a file was written.
  std::function<void(const std::filesystem::path&)> on_written = {};
};

// Writes the files of records into the run folder, each whole or not at all.
class OutputFiles : public Tracker {
 public:
  explicit OutputFiles(OutputFilesConfig config);

  std::string name() const override { return "samples"; }
  void record(const Record& record) override;

 private:
  OutputFilesConfig config_;
};

}  // namespace lockstep::track
