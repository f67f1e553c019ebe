// A run for TensorBoard: one file of events per process that worked on it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "lockstep/track/record_file.h"
#include "lockstep/track/tracker.h"

namespace lockstep::track {

struct TensorBoardConfig {
  std::filesystem::path folder = {};  // Made when it is not there.
  // Set for a resumed run: earlier files stay, readers drop their later steps.
  std::optional<KeptRecords> kept = {};
  // metrics.jsonl, after MetricsFile dropped what goes. Readers can only drop
  // whole steps: what is kept of a step that is partly redone comes from here.
  std::filesystem::path metrics = {};
};

// "<folder>/events.out.tfevents.<unix time>.<host>.<pid>.0". Metrics are
// scalars (32 bits, as TensorBoard wants them), images are images, notes are
// texts. A record is one event, written at once.
class TensorBoardTracker : public Tracker {
 public:
  // Throws IoError.
  explicit TensorBoardTracker(const TensorBoardConfig& config);

  std::string name() const override { return "TensorBoard"; }

  // Throws FormatError when an image is not a PNG file; then nothing of that
  // record is written.
  void record(const Record& record) override;

 private:
  void start(const TensorBoardConfig& config);

  RecordFile file_;
};

}  // namespace lockstep::track
