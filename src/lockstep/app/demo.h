// What a newcomer sees first: a small network trained by one process, then by
// two.
#pragma once

namespace lockstep {

// Started by hand: launches itself under `lockstep run` with one and with two
// processes and compares them. Started by the launcher: trains as one rank.
// Returns the exit code.
int run_demo();

}  // namespace lockstep
