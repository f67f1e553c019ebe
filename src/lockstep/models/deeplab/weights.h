// Initial weights of the recipe scribble.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::deeplab {

class ScribbleNet;

// Loads a file of --model_path: torchvision's ImageNet weights of the ResNet
// (.pth, .pt, .safetensors; its last layer `fc` is left out, the heads stay as
// they are), or a checkpoint of this recipe or of the original with the weights
// of the whole model, distinguished by names. Returns which of them, as text.
// Throws IoError, FormatError for a damaged file or one without weights, and
// ConfigError with names for weights of another model; then nothing is loaded.
std::string load_scribble_weights(ScribbleNet& model,
                                  const std::filesystem::path& path);

// Converts the weights of convolutions to channels-last, which is faster. 1 x 1
// kernels match both formats: they get the strides that their gradients will
// have.
void make_channels_last(ScribbleNet& net);

}  // namespace lockstep::deeplab
