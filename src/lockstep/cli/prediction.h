// --predict: the step time on more processes, from the times of this training.
#pragma once

#include <string>
#include <vector>

#include "lockstep/comm/exchange_model.h"
#include "lockstep/engine/learner.h"
#include "lockstep/track/time_table.h"
#include "lockstep/world.h"

namespace lockstep::cli {

// Throws ConfigError for text that does not name sizes, and in a world of one,
// where no exchange can be measured.
std::vector<comm::ClusterSize> sizes_to_predict(const std::string& text,
                                                const World& world);

// Measures all-reduces of this world, takes the slowest rank's times, and
// returns a table: this world as predicted and as measured, then `sizes`. A
// collective; takes about a second.
std::string prediction_text(const std::vector<comm::ClusterSize>& sizes,
                            const track::StepTimes& times,
                            engine::Learner& learner, const World& world);

}  // namespace lockstep::cli
