// Features and distances are those of pytorch-fid and torch-fidelity; the other
// side is python/fid_reference.py.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/checkpoint.h"
#include "lockstep/fid/feature_net.h"
#include "lockstep/fid/frechet.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using torch::Tensor;

Tree ask_python(const std::string& task, const testing::TempDir& folder) {
  const std::string path = folder.path().string();
  const auto python = testing::run(
      {TORCH_PYTHON, PYTHON_SCRIPTS "/fid_reference.py", task, path},
      {.timeout_seconds = 300});
  EXPECT_EQ(python.exit_code, 0) << python.err;
  return load_checkpoint(path + "/" + task + ".pt");
}

fid::FeatureStatistics statistics(const Tensor& features) {
  fid::FeatureSums sums = fid::empty_sums(features.size(1), features.device());
  fid::add_features(sums, features);
  return fid::statistics_of(sums);
}

double relative_difference(const Tensor& ours, const Tensor& theirs) {
  EXPECT_EQ(ours.sizes(), theirs.sizes());
  return ((ours - theirs).norm() / theirs.norm()).item<double>();
}

TEST(FidParity, DistancesAreThoseOfScipy) {
  const testing::TempDir folder;
  const Tree theirs = ask_python("distances", folder);
  int num_cases = 0;
  for (const auto& entry : theirs.at("cases").as_dict()) {
    const TreeView one(entry.value);
    const double ours =
        fid::frechet_distance(statistics(one.at("first").as_tensor()),
                              statistics(one.at("second").as_tensor()));
    for (const char* name : {"rows", "pytorch-fid", "torch-fidelity"}) {
      const double expected = one.at(name).as_double();
      // Exact where nothing is rounded under a root.
      const double tolerance = std::string(name) == "rows" ? 1e-10 : 1e-6;
      EXPECT_NEAR(ours, expected, tolerance * expected)
          << name << ", case " << *entry.key.get_if<std::string>();
    }
    ++num_cases;
  }
  EXPECT_EQ(num_cases, 4);

  const auto wide = statistics(theirs.at("wide").as_tensor());
  EXPECT_LT(relative_difference(wide.mean, theirs.at("mean").as_tensor()),
            1e-12);
  EXPECT_LT(
      relative_difference(wide.covariance, theirs.at("covariance").as_tensor()),
      1e-12);
}

TEST(FidParity, FeaturesAreThoseOfPytorchFidAndTorchFidelity) {
  const testing::TempDir folder;
  const Tree theirs = ask_python("features", folder);
  for (const char* convention : {"pytorch-fid", "torch-fidelity"}) {
    const auto net = fid::make_feature_net(
        {.weights = folder.path() / "weights.pth", .convention = convention});
    EXPECT_EQ(theirs.get_if<Tree::Dict>()->size(), 4U);
    for (const char* size : {"32", "64", "299", "400x300"}) {
      const TreeView one = theirs.at(size);
      const Tensor ours = net->features(one.at("images").as_tensor());
      EXPECT_EQ(ours.scalar_type(), torch::kFloat);
      EXPECT_LT(relative_difference(ours, one.at(convention).as_tensor()), 1e-5)
          << convention << " " << size;
      // The other convention is another input.
      const char* other = std::string(convention) == "pytorch-fid"
                              ? "torch-fidelity"
                              : "pytorch-fid";
      EXPECT_GT(relative_difference(ours, one.at(other).as_tensor()), 1e-3)
          << convention << " " << size;
      const auto expected = one.find(std::string(convention) + "-distance");
      if (!expected) continue;
      const double distance = fid::frechet_distance(
          statistics(ours.slice(0, 0, 3)), statistics(ours.slice(0, 3)));
      EXPECT_NEAR(distance, expected->as_double(),
                  1e-4 * expected->as_double());
    }
  }
}

}  // namespace
}  // namespace lockstep
