// Files of feature statistics: .npz, as pytorch-fid, torch-fidelity and others
// write them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/fid/feature_net.h"
#include "lockstep/fid/frechet.h"

namespace lockstep::fid {

// The statistics of a file, for scores with this extractor. Known are the names
// mu and sigma, and m2 and s2 of the guide of Just-a-DiT. A file that does not
// name its extractor counts as Inception's when it has 2048 features. Throws
// ConfigError with the path for statistics of another extractor, IoError, and
// FormatError with the path for a file that is damaged or holds something else.
FeatureStatistics read_statistics(const std::filesystem::path& path,
                                  const FeatureNet& net);

// Writes mu, sigma, count, and as bytes of text features, the extractor's id(),
// and data, which identifies the images. Atomic; throws IoError.
void write_statistics(const std::filesystem::path& path,
                      const FeatureStatistics& statistics,
                      const FeatureNet& net, const std::string& data = "");

// What a file records about its data; empty when it records nothing. Throws
// IoError and FormatError.
std::string statistics_data(const std::filesystem::path& path);

// A text that identifies the images.
std::string fingerprint_of(const std::vector<at::Tensor>& images);

}  // namespace lockstep::fid
