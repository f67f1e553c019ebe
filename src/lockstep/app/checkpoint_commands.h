// `lockstep inspect` and `lockstep export`: looking into checkpoint files and
// turning them into others.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

// inspect FILE: what it holds, one line per value or tensor.
std::string inspect_checkpoint(const std::vector<std::string>& arguments);

// export FROM TO [--key NAME]: the weights alone, as .safetensors or torch file
// by the name of TO. Returns what was done.
std::string export_checkpoint(const std::vector<std::string>& arguments);

}  // namespace lockstep
