// `lockstep inspect` and `lockstep export`: list and convert checkpoint files.
#pragma once

#include <string>
#include <vector>

namespace lockstep::app {

// inspect FILE...: lists the contents, one line per value, tensor or list of
// numbers.
std::string inspect_checkpoint(const std::vector<std::string>& arguments);

// export FROM TO [--key NAME]: writes only the weights, as .safetensors or
// torch file depending on the name of TO, without the prefixes of wrappers
// (wrapper_prefix()). Returns what was done and what was left out.
//
// Both return their usage when they are asked for --help.
std::string export_checkpoint(const std::vector<std::string>& arguments);

}  // namespace lockstep::app
