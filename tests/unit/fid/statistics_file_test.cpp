#include "lockstep/fid/statistics_file.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/files.h"
#include "lockstep/checkpoint/record.h"
#include "lockstep/error.h"
#include "lockstep/formats/npz.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

// An extractor with a name and nothing else.
class NamedNet final : public fid::FeatureNet {
 public:
  NamedNet(std::string id, int64_t width) : id_(std::move(id)), width_(width) {}
  std::string name() const override { return "fid"; }
  std::string id() const override { return id_; }
  int64_t width() const override { return width_; }

 protected:
  at::Tensor features_of(const at::Tensor& levels) const override {
    return levels;
  }
  void move_weights(const c10::Device& /*device*/) override {}

 private:
  std::string id_;
  int64_t width_;
};

fid::FeatureStatistics some_statistics(int64_t width) {
  const at::Tensor rows = torch::rand({width, width}, torch::kDouble);
  return {
      .count = 77, .mean = rows[0].clone(), .covariance = rows.mm(rows.t())};
}

class StatisticsFiles : public ::testing::Test {
 protected:
  std::filesystem::path path() const { return folder_.path() / "real.npz"; }

  void write_arrays(
      const std::vector<std::pair<std::string, at::Tensor>>& arrays) const {
    Tree tree = Tree::dict();
    for (const auto& [name, tensor] : arrays) tree[name] = tensor;
    const formats::Value values = checkpoint::to_value(tree);
    formats::NamedTensors records;
    for (const auto& [name, tensor] : arrays) {
      records.emplace_back(name, values.at(name).as_tensor());
    }
    formats::write_npz(path(), records);
  }

  // The error of reading the file for the extractor; it must name the file.
  template <typename Expected>
  std::string error_for(const fid::FeatureNet& net) const {
    try {
      fid::read_statistics(path(), net);
    } catch (const Expected& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(path().string()), std::string::npos) << text;
      return text;
    }
    ADD_FAILURE() << "not the error that was expected";
    return "";
  }

  testing::TempDir folder_;
  NamedNet small_{"builtin-1", 6};
  NamedNet inception_{"inception-v3/pytorch-fid/00c0ffee", 2048};
};

TEST_F(StatisticsFiles, WhatIsWrittenIsRead) {
  const fid::FeatureStatistics written = some_statistics(6);
  fid::write_statistics(path(), written, small_);
  const fid::FeatureStatistics read = fid::read_statistics(path(), small_);
  EXPECT_EQ(read.count, 77);
  EXPECT_TRUE(torch::equal(read.mean, written.mean));
  EXPECT_TRUE(torch::equal(read.covariance, written.covariance));
}

TEST_F(StatisticsFiles, SayOfWhichData) {
  const at::Tensor one = torch::rand({3, 4, 4});
  const std::string data = fid::fingerprint_of({one, one});
  EXPECT_NE(data, fid::fingerprint_of({one, one + 1}));
  EXPECT_NE(data, fid::fingerprint_of({one}));
  EXPECT_EQ(data, fid::fingerprint_of({one.clone(), one.clone()}));
  fid::write_statistics(path(), some_statistics(6), small_, data);
  EXPECT_EQ(fid::statistics_data(path()), data);
  EXPECT_EQ(fid::read_statistics(path(), small_).count, 77);
  fid::write_statistics(path(), some_statistics(6), small_);
  EXPECT_EQ(fid::statistics_data(path()), "");
}

TEST_F(StatisticsFiles, ForeignFilesCountAsInceptions) {
  const at::Tensor mean = torch::rand({2048});
  const at::Tensor covariance = torch::eye(2048);
  for (const auto& [m, s] : {std::pair("mu", "sigma"), std::pair("m2", "s2")}) {
    write_arrays({{m, mean}, {s, covariance}});
    const fid::FeatureStatistics read =
        fid::read_statistics(path(), inception_);
    EXPECT_EQ(read.count, 0);
    EXPECT_TRUE(torch::equal(read.mean, mean.to(torch::kDouble)));
    EXPECT_TRUE(torch::equal(read.covariance, covariance.to(torch::kDouble)));
  }
}

TEST_F(StatisticsFiles, StatisticsOfAnotherNetAreRefused) {
  fid::write_statistics(path(), some_statistics(6), small_);
  const std::string text = error_for<ConfigError>(inception_);
  EXPECT_NE(text.find("'builtin-1' (6 features)"), std::string::npos) << text;
  EXPECT_NE(text.find(inception_.id()), std::string::npos) << text;

  // The same width is not enough.
  error_for<ConfigError>(NamedNet("builtin-2", 6));
  write_arrays({{"mu", torch::rand({2048})}, {"sigma", torch::eye(2048)}});
  error_for<ConfigError>(small_);
  write_arrays({{"mu", torch::rand({6})}, {"sigma", torch::eye(6)}});
  error_for<ConfigError>(small_);
  error_for<ConfigError>(inception_);
}

TEST_F(StatisticsFiles, AFileOfSomethingElseIsNamed) {
  using torch::rand;
  write_arrays({{"mu", rand({6})}});
  EXPECT_NE(error_for<FormatError>(small_).find("no mu and sigma"),
            std::string::npos);
  write_arrays({{"mu", rand({6})}, {"sigma", rand({6, 5})}});
  EXPECT_NE(error_for<FormatError>(small_).find("[6] and [6, 5]"),
            std::string::npos);
  write_arrays({{"mu", rand({6, 1})}, {"sigma", rand({6, 6})}});
  error_for<FormatError>(small_);
  write_arrays({{"mu", rand({0})}, {"sigma", rand({0, 0})}});
  error_for<FormatError>(small_);
  write_arrays(
      {{"mu", torch::ones({6}, torch::kLong)}, {"sigma", rand({6, 6})}});
  error_for<FormatError>(small_);
  write_arrays({{"mu", rand({6}) / 0}, {"sigma", rand({6, 6})}});
  EXPECT_NE(error_for<FormatError>(small_).find("not finite"),
            std::string::npos);
  write_arrays(
      {{"mu", rand({6})}, {"sigma", rand({6, 6})}, {"features", rand({3})}});
  error_for<FormatError>(small_);
  write_arrays(
      {{"mu", rand({6})}, {"sigma", rand({6, 6})}, {"count", rand({3})}});
  error_for<FormatError>(small_);
}

TEST_F(StatisticsFiles, ADamagedOrMissingFileIsNamed) {
  error_for<IoError>(small_);
  folder_.write("real.npz", "");
  error_for<FormatError>(small_);
  fid::write_statistics(path(), some_statistics(6), small_);
  std::string bytes = base::read_file(path());
  folder_.write("real.npz", bytes.substr(0, bytes.size() / 2));
  error_for<FormatError>(small_);
  bytes[bytes.size() / 4] = static_cast<char>(bytes[bytes.size() / 4] ^ 1);
  folder_.write("real.npz", bytes);
  error_for<FormatError>(small_);
}

}  // namespace
}  // namespace lockstep
