#include "lockstep/track/tracker.h"

namespace lockstep::track {

void Tracker::console(const ConsoleText&) {}

void Tracker::tick(double) {}

void Tracker::finish(int) {}

}  // namespace lockstep::track
