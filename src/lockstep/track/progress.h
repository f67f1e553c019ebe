// Progress of a training, as a bar for a terminal or as a plain line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::track {

constexpr const char* kTrainLabel = "train";

// A value that is not known, or means nothing here, is left out of the text.
struct ProgressState {
  std::string label = kTrainLabel;  // "validate", "sample"
  int64_t step = 0;                 // steps done
  int64_t total_steps = 0;          // 0: not known
  int64_t first_step = 0;           // where this process began: a resumed run
  int64_t epoch = 0;                // from 1
  int64_t total_epochs = 0;         // 0: no epochs are shown
  std::optional<double> loss = {};
  std::optional<double> lr = {};
  std::optional<double> samples_per_second = {};
  double seconds_elapsed = 0;  // of this process, since first_step
  std::vector<std::pair<std::string, double>> extra = {};
};

struct BarStyle {
  int columns = 80;      // the bar is cut to one column less
  bool is_utf8 = false;  // block characters instead of # and -
};

// "train  12%|#---| 120/1000 [00:31<03:50, 3.8 it/s] epoch 2/10 loss 1.2345 lr
// 0.0001 480 samples/s", one line without its end.
std::string bar_text(const ProgressState& state, const BarStyle& style);

// "step 120/1000 epoch 2/10 loss 1.2345 lr 0.0001 480 samples/s eta 03:50". The
// label stands in front unless it is "train".
std::string line_text(const ProgressState& state);

// "00:31", "1:02:03"; "?" for anything else.
std::string clock_text(double seconds);

}  // namespace lockstep::track
