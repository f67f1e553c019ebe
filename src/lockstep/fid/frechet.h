// The Frechet distance of two sets of features, each seen as a normal
// distribution.
//
//   FeatureSums sums = empty_sums(net.width(), device);
//   add_features(sums, net.features(images));      // for every batch
//   frechet_distance(statistics_of(sums), real);
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "lockstep/tensor/tensor.h"

namespace lockstep::fid {

// What features of ranks and batches are added up to: every member of two sums
// is added. Doubles alone are exact enough (about 1e-12 where the mean is not
// far above the deviation, as for all features here).
struct FeatureSums {
  int64_t count = 0;
  at::Tensor sum = {};    // double [width]
  at::Tensor outer = {};  // double [width, width]: sum of f f^T
};

FeatureSums empty_sums(int64_t width, const c10::Device& device);

// features: [batch, width] of any type, brought to the device of the sums.
// Throws ConfigError for another width.
void add_features(FeatureSums& sums, const at::Tensor& features);

// On the CPU, in double.
struct FeatureStatistics {
  int64_t count = 0;           // of images; 0: not known
  at::Tensor mean = {};        // [width]
  at::Tensor covariance = {};  // [width, width], divided by count - 1
};

// As np.mean and np.cov. Throws ConfigError for fewer than two features.
FeatureStatistics statistics_of(const FeatureSums& sums);

// |m1 - m2|^2 + tr(C1 + C2 - 2 sqrt(C1 C2)), on the CPU; a width of 2048 takes
// half a minute of one core, shared by torch's threads. Also for covariances
// without full rank, of fewer images than features. At least 0 and never NaN.
// Throws ConfigError when the widths differ or a value is not finite.
double frechet_distance(const FeatureStatistics& a, const FeatureStatistics& b);

}  // namespace lockstep::fid
