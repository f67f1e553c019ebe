#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <sstream>

#include "lockstep/base/strings.h"
#include "lockstep/checkpoint.h"
#include "lockstep/error.h"
#include "lockstep/models/deeplab/model.h"
#include "lockstep/models/deeplab/weights.h"
#include "support/temp_dir.h"
#include "unit/models/scribble_names.h"

namespace lockstep {
namespace {

using torch::Tensor;

struct Original {
  const char* type;
  int64_t num_trainable;
  const char* head;
};
constexpr std::array<Original, 4> kOriginals = {
    {{"res50_ASPP_lorm", 33'150'426, testing::kScribbleAsppLorm},
     {"deeplabv2", 24'757'721, testing::kScribbleDeeplabv2},
     {"deeplabv3p", 40'352'181, testing::kScribbleDeeplabv3p},
     {"deeplabv3p_lorm", 48'744'886, testing::kScribbleDeeplabv3pLorm}}};

using Lines = std::vector<std::string>;

// "name shape" of parameters and of buffers, in the order of the list.
struct Listed {
  Lines parameters;
  Lines buffers;
};

Listed read_list(const std::string& text) {
  Listed listed;
  std::istringstream lines(text);
  std::string name;
  std::string shape;
  while (lines >> name >> shape) {
    if (shape != "norm") {
      listed.parameters.push_back(name + " " + shape);
      continue;
    }
    lines >> shape;
    name.back() = '.';
    for (const char* part : {"weight", "bias"}) {
      listed.parameters.push_back(name + part + " " + shape);
    }
    for (const char* part : {"running_mean", "running_var"}) {
      listed.buffers.push_back(name + part + " " + shape);
    }
    listed.buffers.push_back(name + "num_batches_tracked ");
  }
  return listed;
}

template <typename Named>
Lines lines_of(const Named& named) {
  Lines lines;
  for (const auto& item : named) {
    std::vector<std::string> sizes;
    for (const int64_t size : item.value().sizes()) {
      sizes.push_back(std::to_string(size));
    }
    lines.push_back(item.key() + " " + base::join(sizes, "x"));
  }
  return lines;
}

std::shared_ptr<deeplab::ScribbleNet> make_net(const std::string& type,
                                               int64_t layers) {
  return std::make_shared<deeplab::ScribbleNet>(deeplab::ScribbleModelConfig{
      .type = type, .layers = layers, .num_classes = 5});
}

std::string weights_refusal(deeplab::ScribbleNet& net,
                            const std::filesystem::path& path) {
  try {
    deeplab::load_scribble_weights(net, path);
  } catch (const Error& error) {
    return kind_name(error) + ": " + error.what();
  }
  return "no error";
}

TEST(ScribbleModel, HasTheParametersOfTheOriginal) {
  for (const Original& original : kOriginals) {
    SCOPED_TRACE(original.type);
    const deeplab::ScribbleNet net({.type = original.type});
    const Listed listed =
        read_list(testing::kScribbleTrunk + std::string(original.head));
    EXPECT_EQ(lines_of(net.named_parameters()), listed.parameters);
    EXPECT_EQ(lines_of(net.named_buffers()), listed.buffers);
    int64_t num_trainable = 0;
    for (const Tensor& parameter : net.parameters()) {
      num_trainable += parameter.numel();
    }
    EXPECT_EQ(num_trainable, original.num_trainable);
  }
}

TEST(ScribbleModel, GivesLogitsAtItsStrideForAllDepthsAndTypes) {
  at::set_num_threads(1);
  const torch::NoGradGuard no_grad;
  for (const Original& original : kOriginals) {
    SCOPED_TRACE(original.type);
    const auto net = make_net(original.type, 18);
    const deeplab::ScribbleOutput out =
        net->forward(torch::randn({2, 3, 65, 49}));
    const bool has_decoder =
        std::string(original.type).starts_with("deeplabv3");
    using Shape = std::vector<int64_t>;
    EXPECT_EQ(out.logits.sizes(),
              has_decoder ? (Shape{2, 5, 17, 13}) : (Shape{2, 5, 9, 7}));
    EXPECT_EQ(out.features.sizes(), (Shape{2, 512, 9, 7}));
    EXPECT_EQ(deeplab::resize_maps(out.logits, 65, 49).size(2), 65);
    if (!deeplab::has_lorm(net->config())) continue;
    const Tensor classes = torch::ones({2, 65, 49}, at::kByte);
    EXPECT_GT(net->lorm_loss(out.features, classes).sum.item<double>(), 0);
  }
  for (const int64_t layers : {34, 101, 152}) {
    const auto net = make_net("deeplabv2", layers);
    net->eval();
    const deeplab::ScribbleOutput out =
        net->forward(torch::randn({1, 3, 33, 33}));
    EXPECT_EQ(out.logits.size(2), 5) << layers;
    EXPECT_EQ(out.features.size(1), layers == 34 ? 512 : 2048);
  }
}

TEST(ScribbleModel, ComputesTheSameInChannelsLast) {
  at::set_num_threads(1);
  torch::manual_seed(2);
  const auto net = make_net("deeplabv3p_lorm", 18);
  net->eval();
  const torch::NoGradGuard no_grad;
  const Tensor images = torch::randn({2, 3, 65, 65});
  const deeplab::ScribbleOutput expected = net->forward(images);
  for (Tensor& parameter : net->parameters()) {
    if (parameter.dim() == 4) {
      parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
    }
  }
  const deeplab::ScribbleOutput out =
      net->forward(images.contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_LT((out.logits - expected.logits).norm().item<double>(),
            1e-5 * expected.logits.norm().item<double>());
  EXPECT_TRUE(out.logits.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(out.features.is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST(ScribbleModel, BeginsAsTheOriginalDoes) {
  torch::manual_seed(1);
  const deeplab::ScribbleNet net({.type = "deeplabv3p_lorm"});
  const auto all = net.named_parameters();
  const auto deviation = [&](const std::string& name) {
    return all[name].std().item<double>();
  };
  EXPECT_NEAR(deviation("layer3.2.conv2.weight"), std::sqrt(2. / (9 * 256)),
              1e-3);
  EXPECT_NEAR(deviation("layer_lorm.key_conv.weight"), std::sqrt(2. / 2048),
              1e-3);
  EXPECT_EQ(all["layer_lorm.query_conv.bias"].abs().max().item<float>(), 0);
  EXPECT_EQ(all["layer_lorm.gamma"].item<float>(), 1);
  EXPECT_EQ(all["layer2.0.downsample.1.weight"].min().item<float>(), 1);
}

TEST(ScribbleModel, DropsFeaturesInTrainingOnly) {
  at::set_num_threads(1);
  const auto net = make_net("deeplabv3p", 18);
  const torch::NoGradGuard no_grad;
  const Tensor images = torch::randn({3, 3, 33, 33});
  EXPECT_FALSE(
      torch::equal(net->forward(images).logits, net->forward(images).logits));
  net->eval();
  EXPECT_TRUE(
      torch::equal(net->forward(images).logits, net->forward(images).logits));
}

TEST(ScribbleModel, CountsItsWork) {
  // Trunk, ASPP and LoRM: 84.3, 4.2 and 78.8 G multiplications.
  const auto products = [](const std::string& type) {
    return deeplab::scribble_forward_flops({.type = type}, 465) / 2e9;
  };
  EXPECT_NEAR(products("deeplabv2"), 84.3 + 4.2, 0.1);
  EXPECT_NEAR(products("res50_ASPP_lorm"), 84.3 + 4.2 + 78.8, 0.1);
  EXPECT_GT(products("deeplabv3p"), 100);
}

TEST(ScribbleModel, RefusesWhatIsNoModel) {
  EXPECT_THROW(deeplab::check_scribble_config({.type = "deeplabv4"}),
               ConfigError);
  EXPECT_THROW(deeplab::check_scribble_config({.layers = 51}), ConfigError);
  EXPECT_THROW(deeplab::check_scribble_config({.num_classes = 256}),
               ConfigError);
}

TEST(ScribbleWeights, LoadsImagenetWeightsByName) {
  const testing::TempDir folder;
  torch::manual_seed(4);
  const auto source = make_net("deeplabv2", 18);
  Tree::Dict state;
  const Tree whole = module_state(*source);
  for (const auto& entry : *whole.get_if<Tree::Dict>()) {
    const auto& name = *entry.key.get_if<std::string>();
    // Files of old torchvision have no counters.
    const bool is_kept =
        !name.starts_with("layer5.") && !name.ends_with("num_batches_tracked");
    if (is_kept) state.push_back(entry);
  }
  state.push_back({"fc.weight", torch::ones({1000, 512})});
  state.push_back({"fc.bias", torch::ones({1000})});
  save_checkpoint(folder.path() / "resnet18.pth", Tree(state));
  save_safetensors(folder.path() / "resnet18.safetensors", Tree(state));
  for (const char* name : {"resnet18.pth", "resnet18.safetensors"}) {
    const auto net = make_net("res50_ASPP_lorm", 18);
    const Tensor head = net->named_parameters()["layer_pred0.conv1.weight"];
    const Tensor before = head.clone();
    EXPECT_EQ(deeplab::load_scribble_weights(*net, folder.path() / name),
              "ImageNet weights of the trunk");
    EXPECT_TRUE(torch::equal(head, before));
    for (const char* part : {"conv1.weight", "layer4.1.bn2.bias"}) {
      EXPECT_TRUE(torch::equal(net->named_parameters()[part],
                               source->named_parameters()[part]));
    }
  }
  const auto deeper = make_net("deeplabv2", 50);
  const std::string text =
      weights_refusal(*deeper, folder.path() / "resnet18.pth");
  EXPECT_TRUE(text.starts_with("ConfigError")) << text;
  EXPECT_NE(text.find("--layers 50"), std::string::npos) << text;
  EXPECT_NE(text.find("layer1.0.conv1.weight: file [64, 64, 3, 3]"),
            std::string::npos)
      << text;
}

TEST(ScribbleWeights, LoadsWholeCheckpointsAlsoWrappedOnes) {
  const testing::TempDir folder;
  torch::manual_seed(5);
  const auto source = make_net("res50_ASPP_lorm", 18);
  Tree::Dict wrapped;
  const Tree whole = module_state(*source);
  for (const auto& entry : *whole.get_if<Tree::Dict>()) {
    wrapped.push_back(
        {"module." + *entry.key.get_if<std::string>(), entry.value});
  }
  Tree file;
  file["epoch"] = 3;
  file["state_dict"] = Tree(wrapped);
  const auto path = folder.path() / "checkpoint_3.pth";
  save_checkpoint(path, file);
  const auto net = make_net("res50_ASPP_lorm", 18);
  EXPECT_EQ(deeplab::load_scribble_weights(*net, path),
            "weights of the whole model");
  for (const auto& item : source->named_parameters()) {
    EXPECT_TRUE(torch::equal(net->named_parameters()[item.key()], item.value()))
        << item.key();
  }
  const auto other = make_net("deeplabv2", 18);
  EXPECT_NE(
      weights_refusal(*other, path).find("layer5.aspp1.atrous_conv.weight"),
      std::string::npos);
}

TEST(ScribbleWeights, RefusesFilesWithoutWeights) {
  const testing::TempDir folder;
  Tree file;
  file["epoch"] = 3;
  save_checkpoint(folder.path() / "empty.pth", file);
  const auto net = make_net("deeplabv2", 18);
  EXPECT_TRUE(weights_refusal(*net, folder.path() / "empty.pth")
                  .starts_with("FormatError"));
  EXPECT_TRUE(weights_refusal(*net, folder.path() / "nowhere.pth")
                  .starts_with("IoError"));
}

}  // namespace
}  // namespace lockstep
