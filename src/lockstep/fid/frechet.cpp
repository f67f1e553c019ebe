#include "lockstep/fid/frechet.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lockstep/error.h"

namespace lockstep::fid {
namespace {

// F with F F^T = C. Eigenvalues that are nothing but rounding become columns
// that are left out: their square root would be large enough to be seen. What
// was rounded is the covariance plus the outer product of the mean.
at::Tensor factor_of(const FeatureStatistics& statistics) {
  const auto [values, vectors] = at::linalg_eigh(statistics.covariance);
  const double largest = values.abs().max().item<double>() +
                         statistics.mean.square().sum().item<double>();
  const double noise = static_cast<double>(values.numel()) *
                       std::numeric_limits<double>::epsilon() * largest;
  const at::Tensor kept = at::nonzero(values > noise).squeeze(1);
  return vectors.index_select(1, kept) * values.index_select(0, kept).sqrt();
}

void check_statistics(const FeatureStatistics& statistics) {
  const bool is_finite = statistics.mean.isfinite().all().item<bool>() &&
                         statistics.covariance.isfinite().all().item<bool>();
  if (!is_finite) {
    throw ConfigError(
        "Frechet distance: the statistics hold values that are not finite");
  }
}

}  // namespace

FeatureSums empty_sums(int64_t width, const c10::Device& device) {
  const auto options = at::TensorOptions(at::kDouble).device(device);
  return {.sum = at::zeros({width}, options),
          .outer = at::zeros({width, width}, options)};
}

void add_features(FeatureSums& sums, const at::Tensor& features) {
  if (features.dim() != 2 || features.size(1) != sums.sum.size(0)) {
    throw ConfigError(
        fmt::format("got features of {} values per image, expected {}",
                    features.numel() / std::max<int64_t>(features.size(0), 1),
                    sums.sum.size(0)));
  }
  const at::NoGradGuard no_grad;
  const at::Tensor exact = features.to(sums.sum.device(), at::kDouble);
  sums.count += exact.size(0);
  sums.sum.add_(exact.sum(0));
  sums.outer.addmm_(exact.t(), exact);
}

FeatureStatistics statistics_of(const FeatureSums& sums) {
  if (sums.count < 2) {
    throw ConfigError(fmt::format(
        "statistics of {} images: at least 2 are needed, and thousands for a "
        "meaningful distance",
        sums.count));
  }
  const auto count = static_cast<double>(sums.count);
  const at::Tensor mean = sums.sum.cpu() / count;
  const at::Tensor spread = sums.outer.cpu() - count * at::outer(mean, mean);
  return {
      .count = sums.count, .mean = mean, .covariance = spread / (count - 1)};
}

double frechet_distance(const FeatureStatistics& a,
                        const FeatureStatistics& b) {
  if (a.mean.sizes() != b.mean.sizes()) {
    throw ConfigError(
        fmt::format("Frechet distance: statistics of {} and of {} features "
                    "cannot be compared",
                    a.mean.numel(), b.mean.numel()));
  }
  check_statistics(a);
  check_statistics(b);
  // With C1 = F F^T and C2 = G G^T the eigenvalues of C1 C2 are the squares of
  // the singular values of F^T G; so no rounding error is ever under a root.
  const at::Tensor mixed = at::mm(factor_of(a).t(), factor_of(b));
  const double trace_of_root =
      mixed.numel() == 0 ? 0 : at::linalg_svdvals(mixed).sum().item<double>();
  const double distance = (a.mean - b.mean).square().sum().item<double>() +
                          a.covariance.trace().item<double>() +
                          b.covariance.trace().item<double>() -
                          2 * trace_of_root;
  return std::max(distance, 0.0);
}

}  // namespace lockstep::fid
