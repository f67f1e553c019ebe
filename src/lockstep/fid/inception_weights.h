// The convolutions of FID's Inception, read from the weights file of
// pytorch-fid.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace lockstep::fid {

struct InceptionLayer {
  std::string name = {};  // "Mixed_5b.branch1x1"
  int64_t in = 1;         // Channels.
  int64_t out = 1;
  std::array<int64_t, 2> kernel = {1, 1};  // Height and width.
  std::array<int64_t, 2> padding = {0, 0};
  int64_t stride = 1;
};

// All 94 convolutions, in the order in which they are first used.
std::vector<InceptionLayer> inception_layers();

// A convolution with its batch norm folded into it: weight and bias.
struct InceptionConv {
  InceptionLayer layer = {};
  at::Tensor weight = {};
  at::Tensor bias = {};
};

struct InceptionWeights {
  std::map<std::string, InceptionConv, std::less<>> convs = {};
  // Hash of the values that were read: other weights, other features.
  uint32_t checksum = 0;
};

// On the CPU, float32. The classifier at the end (fc) is not used; files that
// hold one of other than FID's 1008 classes, or an auxiliary one, are not FID's
// weights. Throws ConfigError for weights of another network, IoError,
// FormatError; all name the path.
InceptionWeights read_inception_weights(const std::filesystem::path& path);

}  // namespace lockstep::fid
