// What is asked of the weights file. The features themselves are compared with
// pytorch-fid's in tests/interop/fid_parity_test.cpp.
#include "lockstep/fid/inception.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/checkpoint.h"
#include "lockstep/error.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

Tree zero_weights() {
  Tree state = Tree::dict();
  for (const fid::InceptionLayer& layer : fid::inception_layers()) {
    // One value stands for all: files keep it so.
    const at::Tensor zero = torch::zeros({1});
    state[layer.name + ".conv.weight"] =
        zero.expand({layer.out, layer.in, layer.kernel[0], layer.kernel[1]});
    for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
      state[layer.name + ".bn." + name] = zero.expand({layer.out});
    }
  }
  return state;
}

class InceptionWeightsFiles : public ::testing::Test {
 protected:
  std::string path() const { return (folder_.path() / "w.pth").string(); }

  std::unique_ptr<fid::FeatureNet> load(const Tree& state) const {
    save_checkpoint(path(), state);
    return fid::make_feature_net({.weights = path()});
  }

  std::string refusal(const Tree& state) const {
    try {
      load(state);
    } catch (const ConfigError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(path()), std::string::npos) << text;
      return text;
    }
    ADD_FAILURE() << "not refused";
    return "";
  }

  testing::TempDir folder_;
};

TEST_F(InceptionWeightsFiles, NamesAndShapesOfPytorchFidAreTaken) {
  EXPECT_EQ(fid::inception_layers().size(), 94U);
  Tree state = zero_weights();
  const auto net = load(state);
  EXPECT_EQ(net->name(), "fid");
  EXPECT_EQ(net->width(), 2048);

  state["fc.weight"] = torch::zeros({1}).expand({1008, 2048});
  state["fc.bias"] = torch::zeros({1008});
  state["Conv2d_1a_3x3.bn.num_batches_tracked"] = torch::zeros({}, at::kLong);
  EXPECT_EQ(load(state)->id(), net->id());
}

TEST_F(InceptionWeightsFiles, OtherWeightsOrConventionsHaveOtherIds) {
  Tree state = zero_weights();
  const std::string id = load(state)->id();
  EXPECT_EQ(id.find("inception-v3/pytorch-fid/"), 0U) << id;
  EXPECT_EQ(
      fid::make_feature_net({.weights = path(), .convention = "torch-fidelity"})
          ->id(),
      "inception-v3/torch-fidelity/" + id.substr(id.rfind('/') + 1));
  state["Mixed_7c.branch_pool.bn.bias"] = torch::ones({192});
  EXPECT_NE(load(state)->id(), id);
}

TEST_F(InceptionWeightsFiles, OtherNetsAreRefused) {
  Tree torchvision = zero_weights();
  torchvision["fc.weight"] = torch::zeros({1}).expand({1000, 2048});
  EXPECT_NE(refusal(torchvision).find("fc.weight is [1000, 2048] instead of"),
            std::string::npos);

  Tree with_auxiliary = zero_weights();
  with_auxiliary["AuxLogits.conv0.conv.weight"] = torch::zeros({1});
  EXPECT_NE(refusal(with_auxiliary).find("unknown AuxLogits.conv0.conv.weight"),
            std::string::npos);

  const Tree complete = zero_weights();
  Tree without_one = Tree::dict();
  for (const auto& entry : *complete.get_if<Tree::Dict>()) {
    const std::string name = *entry.key.get_if<std::string>();
    if (name != "Mixed_6b.branch7x7_2.bn.bias") without_one[name] = entry.value;
  }
  EXPECT_NE(refusal(without_one).find("(no Mixed_6b.branch7x7_2.bn.bias)"),
            std::string::npos);

  Tree other = Tree::dict();
  other["weight"] = torch::zeros({3});
  EXPECT_NE(refusal(other).find(" more)"), std::string::npos);
  refusal(Tree::dict());
}

TEST_F(InceptionWeightsFiles, AMissingOrDamagedFileIsNamed) {
  const auto text_of = [this](auto&& expected) {
    try {
      fid::make_feature_net({.weights = path()});
    } catch (const std::decay_t<decltype(expected)>& error) {
      return std::string(error.what());
    }
    return std::string("not the error that was expected");
  };
  EXPECT_NE(text_of(IoError("")).find(path()), std::string::npos);
  folder_.write("w.pth", "no weights");
  EXPECT_NE(text_of(FormatError("")).find(path()), std::string::npos);
}

TEST_F(InceptionWeightsFiles, OnlyImagesAreScored) {
  const auto net = load(zero_weights());
  EXPECT_EQ(net->features(torch::zeros({0, 3, 32, 32}, at::kByte)).sizes(),
            (std::vector<int64_t>{0, 2048}));
  EXPECT_THROW(net->features(torch::zeros({1, 3, 32, 32})), ConfigError);
  EXPECT_THROW(net->features(torch::zeros({1, 1, 32, 32}, at::kByte)),
               ConfigError);
  EXPECT_THROW(net->features(torch::zeros({3, 32, 32}, at::kByte)),
               ConfigError);
  EXPECT_THROW(fid::make_feature_net({.convention = "tf"}), ConfigError);
}

}  // namespace
}  // namespace lockstep
