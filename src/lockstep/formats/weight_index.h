// The index of a sharded checkpoint, which maps tensors to files:
// model.safetensors.index.json of Hugging Face.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace lockstep::formats {

// Name of a tensor -> name of a file in the same folder. Throws FormatError for
// text that is not such a list, or that leads out of the folder.
std::map<std::string, std::string> parse_weight_index(std::string_view json);

}  // namespace lockstep::formats
