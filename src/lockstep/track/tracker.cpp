#include "lockstep/track/tracker.h"

namespace lockstep {

void Tracker::console(const ConsoleText&) {}

void Tracker::tick(double) {}

void Tracker::finish(int) {}

}  // namespace lockstep
