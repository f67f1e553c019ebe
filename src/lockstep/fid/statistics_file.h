// Files of feature statistics: .npz, as pytorch-fid, torch-fidelity and others
// write them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/fid/feature_net.h"
#include "lockstep/fid/frechet.h"

namespace lockstep {

// The statistics of a file, for scores by this net. Known are the names mu and
// sigma, and m2 and s2 of the guide of Just-a-DiT. A file that does not say
// which net made it counts as Inception's when it has 2048 features. Throws
// ConfigError with the path for statistics of another net, IoError, and
// FormatError with the path for a file that is damaged or holds something else.
FeatureStatistics read_statistics(const std::filesystem::path& path,
                                  const FeatureNet& net);

// Writes mu, sigma, count, and as bytes of text features, the net's id(), and
// data, which tells the images from others. Atomic; throws IoError.
void write_statistics(const std::filesystem::path& path,
                      const FeatureStatistics& statistics,
                      const FeatureNet& net, const std::string& data = "");

// What a file says of its data; empty when it says nothing. Throws IoError and
// FormatError.
std::string statistics_data(const std::filesystem::path& path);

// A text that other images do not give.
std::string fingerprint_of(const std::vector<at::Tensor>& images);

}  // namespace lockstep
