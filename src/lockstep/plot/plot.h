// The image of a run: its losses, learning rate, speed and gradients.
#pragma once

#include <string>

#include "lockstep/plot/drawing.h"
#include "lockstep/plot/series.h"

namespace lockstep::plot {

struct RunCurves {
  std::string title = {};
  Series train_loss = {};
  Series validation_loss = {};
  Series learning_rate = {};
  Series samples_per_second = {};
  Series gradient_norm = {};
};

// 1200 x 800 pixels. The losses share a panel: training faint, with a bold line
// of its mean; validation with its lowest value marked. The others stand below,
// those that have values. The loss has a logarithmic scale when its positive
// values span two decades; values of 0 (or as good as that) then stand at the
// lower edge, unless they are most.
Drawing draw_run(const RunCurves& curves);

}  // namespace lockstep::plot
