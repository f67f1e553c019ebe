// `lockstep inspect` and `lockstep export`: looking into checkpoint files and
// turning them into others.
#pragma once

#include <string>
#include <vector>

namespace lockstep::app {

// inspect FILE...: what each holds, one line per value, tensor or list of
// numbers.
std::string inspect_checkpoint(const std::vector<std::string>& arguments);

// export FROM TO [--key NAME]: the weights alone, as .safetensors or torch file
// by the name of TO, without the prefixes of wrappers (wrapper_prefix()).
// Returns what was done and what was left out.
//
// Both return their usage when they are asked for --help.
std::string export_checkpoint(const std::vector<std::string>& arguments);

}  // namespace lockstep::app
