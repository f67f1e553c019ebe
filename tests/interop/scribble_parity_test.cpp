// The models of the recipe scribble, their loss terms, gradients and running
// statistics are those of an independent implementation; the other side is
// python/scribble_reference.py.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "interop/parity.h"
#include "lockstep/checkpoint.h"
#include "lockstep/models/deeplab/model.h"
#include "lockstep/models/deeplab/weights.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using testing::expect_close;
using torch::Tensor;

constexpr int64_t kBatch = 3;
constexpr double kSmoothing = 0.1;

struct Sizes {
  std::string name;
  std::string type;
  int64_t layers = 18;
  int64_t image_side = 65;
  at::ScalarType dtype = at::kFloat;
  double tolerance = 1e-4;
};

// The weight of each term.
const std::vector<std::pair<std::string, double>> kWeights = {{"l_segs", 1},
                                                              {"l_pesudo", 0.5},
                                                              {"l_ds", 0.7},
                                                              {"l_dc", 0.3},
                                                              {"l_lorm", 0.9}};
const std::vector<std::string> kTerms = {"scribble", "pseudo", "ds", "dc",
                                         "lorm"};

struct Case {
  Sizes sizes;
  std::shared_ptr<deeplab::ScribbleNet> net;
  Tensor images;
  Tensor labels;
  Tensor pseudo;
  Tensor ds;
  Tensor dc;
};

Case make_case(const Sizes& sizes) {
  const int64_t side = sizes.image_side;
  const std::vector<int64_t> shape = {kBatch, side, side};
  Case made{
      .sizes = sizes,
      .net =
          std::make_shared<deeplab::ScribbleNet>(deeplab::ScribbleModelConfig{
              .type = sizes.type, .layers = sizes.layers, .num_classes = 7}),
      .images = torch::randn({kBatch, 3, side, side}),
      .labels = torch::randint(7, shape).to(at::kByte),
      .pseudo = torch::zeros(shape, at::kByte),
      .ds = torch::randint(256, shape).to(at::kByte),
      .dc = torch::randint(256, shape).to(at::kByte)};
  testing::shake(*made.net, 0.01);
  made.labels.masked_fill_(torch::rand(shape) < 0.8, data::kNoLabel);
  made.pseudo.slice(1, side / 3, 2 * side / 3).fill_(4);
  made.pseudo.slice(2, side / 2, side / 2 + 3).fill_(data::kNoLabel);
  made.ds.masked_fill_(made.labels != data::kNoLabel, 0);
  return made;
}

Tree case_tree(const Case& made) {
  Tree tree;
  tree["sizes"]["model_type"] = made.sizes.type;
  tree["sizes"]["layers"] = made.sizes.layers;
  tree["sizes"]["classes"] = made.net->config().num_classes;
  tree["weights"] = module_state(*made.net);
  tree["images"] = made.images;
  tree["labels"] = made.labels;
  tree["pseudo"] = made.pseudo;
  tree["ds"] = made.ds;
  tree["dc"] = made.dc;
  tree["is_double"] = made.sizes.dtype == at::kDouble ? 1 : 0;
  for (const auto& [name, weight] : kWeights) tree["settings"][name] = weight;
  tree["settings"]["label_smooth"] = kSmoothing;
  return tree;
}

// The reference drops nothing.
void stop_dropout(torch::nn::Module& net) {
  for (const auto& module : net.modules(/*include_self=*/false)) {
    if (module->as<torch::nn::Dropout>() != nullptr) module->eval();
  }
}

std::vector<deeplab::LossSum> loss_terms(const Case& made,
                                         const deeplab::ScribbleOutput& out) {
  const int64_t side = made.sizes.image_side;
  const Tensor logs = deeplab::log_probabilities(out.logits, side, side);
  const Tensor entropy = deeplab::pixel_entropy(logs);
  std::vector<deeplab::LossSum> terms = {
      deeplab::cross_entropy(logs, made.labels),
      deeplab::cross_entropy(logs, made.pseudo, kSmoothing),
      deeplab::weighted_entropy(entropy, made.ds),
      deeplab::weighted_entropy(entropy, made.dc)};
  if (deeplab::has_lorm(made.net->config())) {
    terms.push_back(made.net->lorm_loss(out.features, made.pseudo));
  }
  return terms;
}

void expect_equal_step(const Case& made, const TreeView& theirs) {
  const double tolerance = made.sizes.tolerance;
  const auto expect = [&](const Tensor& ours, const TreeView& other,
                          const std::string& what) {
    expect_close(ours.detach(), other.as_tensor(),
                 {.what = what, .tolerance = tolerance});
  };
  stop_dropout(*made.net);
  const deeplab::ScribbleOutput out =
      made.net->forward(made.images.to(made.sizes.dtype));
  expect(out.features, theirs.at("features"), "features");
  expect(out.logits, theirs.at("logits"), "logits");
  const auto terms = loss_terms(made, out);
  ASSERT_EQ(terms.size(), theirs.at("terms").as_dict().size());
  Tensor total = torch::zeros({}, made.sizes.dtype);
  for (size_t i = 0; i < terms.size(); ++i) {
    const TreeView term = theirs.at("terms").at(kTerms[i]);
    expect(terms[i].sum, term.at("sum"), kTerms[i]);
    EXPECT_EQ(terms[i].normaliser.item<int64_t>(),
              term.at("normaliser").as_tensor().item<int64_t>())
        << kTerms[i];
    total = total + kWeights[i].second * terms[i].sum / terms[i].normaliser;
  }
  expect(total, theirs.at("total"), "total");
  total.backward();
  testing::expect_equal_gradients(*made.net, theirs.at("gradients"), tolerance);
  for (const auto& item : made.net->named_buffers()) {
    expect(item.value(), theirs.at("model").at(item.key()), item.key());
  }
}

void expect_equal_evaluation(const Case& made, const TreeView& theirs) {
  const torch::NoGradGuard no_grad;
  made.net->eval();
  const int64_t side = made.sizes.image_side;
  const Tensor logits =
      made.net->forward(made.images.to(made.sizes.dtype)).logits;
  expect_close(deeplab::resize_maps(logits, side, side),
               theirs.at("eval_logits").as_tensor(),
               {.what = "evaluation", .tolerance = made.sizes.tolerance});
  // Back again, by name.
  deeplab::ScribbleNet read(made.net->config());
  EXPECT_TRUE(load_module_state(read, theirs.at("model")).is_complete());
}

void expect_equal_nets(const std::vector<Sizes>& all) {
  // Threads that wait for each other are slow where others work too.
  at::set_num_threads(1);
  torch::manual_seed(5);
  Tree cases;
  std::vector<Case> made;
  for (const Sizes& sizes : all) {
    made.push_back(make_case(sizes));
    cases[sizes.name] = case_tree(made.back());
  }
  const Tree results = testing::run_reference("scribble_reference.py", cases);
  for (const Case& one : made) {
    SCOPED_TRACE(one.sizes.name);
    one.net->to(one.sizes.dtype);
    expect_equal_step(one, results.at(one.sizes.name));
    expect_equal_evaluation(one, results.at(one.sizes.name));
  }
}

// A ReLU near its bend goes the other way by a rounding, so that tight bounds
// need float64. Small images leave wide dilations without neighbours.
std::vector<Sizes> sizes_of(const std::string& type) {
  return {{.name = "18", .type = type},
          {.name = "50", .type = type, .layers = 50, .image_side = 49},
          {.name = "exact",
           .type = type,
           .image_side = type == "deeplabv2" ? 201 : 81,
           .dtype = at::kDouble,
           .tolerance = 1e-9}};
}

TEST(ScribbleParity, AsppWithLormEqualsPython) {
  expect_equal_nets(sizes_of("res50_ASPP_lorm"));
}

TEST(ScribbleParity, Deeplabv2EqualsPython) {
  expect_equal_nets(sizes_of("deeplabv2"));
}

TEST(ScribbleParity, Deeplabv3pEqualsPython) {
  expect_equal_nets(sizes_of("deeplabv3p"));
}

TEST(ScribbleParity, Deeplabv3pWithLormEqualsPython) {
  expect_equal_nets(sizes_of("deeplabv3p_lorm"));
}

TEST(ScribbleParity, LoadsWeightsOfTorchvisionByName) {
  for (const int64_t layers : {18, 50}) {
    const testing::TempDir folder;
    const auto path = folder.path() / "resnet.pth";
    const auto python =
        testing::run({TORCH_PYTHON, PYTHON_SCRIPTS "/torchvision_weights.py",
                      std::to_string(layers), path.string()});
    ASSERT_EQ(python.exit_code, 0) << python.err;
    deeplab::ScribbleNet net({.type = "res50_ASPP_lorm", .layers = layers});
    EXPECT_EQ(deeplab::load_scribble_weights(net, path),
              "ImageNet weights of the trunk");
    const Tree file = load_checkpoint(path);
    size_t num_equal = 0;
    for (const auto& parameter : net.named_parameters()) {
      const Tree* theirs = file.find(parameter.key());
      if (theirs == nullptr) continue;
      EXPECT_TRUE(torch::equal(parameter.value(), *theirs->get_if<Tensor>()))
          << parameter.key();
      ++num_equal;
    }
    EXPECT_EQ(num_equal, layers == 18 ? 60U : 159U);
  }
}

}  // namespace
}  // namespace lockstep
