#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>
#include <set>
#include <sstream>

#include "lockstep/error.h"
#include "lockstep/models/protein/graph.h"
#include "lockstep/models/protein/inference.h"
#include "lockstep/models/protein/losses.h"
#include "lockstep/models/protein/masking.h"
#include "lockstep/models/protein/model.h"
#include "lockstep/models/protein/vocabulary.h"

namespace lockstep {
namespace {

using torch::Tensor;

const protein::ProteinConfig kSmall = {.width = 16,
                                       .encoder_depth = 2,
                                       .decoder_depth = 2,
                                       .num_heads = 2,
                                       .num_neighbours = 4,
                                       .dropout = 0.5};

int64_t num_values(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const auto& parameter : module.parameters()) count += parameter.numel();
  return count;
}

std::string shape_text(const Tensor& tensor) {
  std::string text;
  for (const int64_t size : tensor.sizes()) {
    text += (text.empty() ? "" : "x") + std::to_string(size);
  }
  return text;
}

// Random places, as far apart as residues are.
Tensor random_coords(int64_t batch, int64_t length) {
  return torch::randn({batch, length, 1, 3}) * 8 +
         torch::randn({batch, length, 4, 3});
}

protein::ProteinInput random_input() {
  const Tensor lengths = torch::tensor({9, 4, 1, 12}, torch::kLong);
  const Tensor is_real = torch::arange(12) < lengths.unsqueeze(1);
  const Tensor is_fragment =
      torch::arange(20) <
      torch::tensor({15, 7, 2, 20}, torch::kLong).unsqueeze(1);
  return {.coords = random_coords(4, 12) * is_real.view({4, 12, 1, 1}),
          .lengths = lengths,
          .fragments = torch::randint(protein::kMaskFragment,
                                      protein::kNumFragments, {4, 20}) *
                       is_fragment};
}

// Sample i of a batch, cut to its own size.
protein::ProteinInput alone(const protein::ProteinInput& input, int64_t i) {
  const int64_t length = input.lengths[i].item<int64_t>();
  const int64_t size =
      input.fragments[i].ne(protein::kPadFragment).sum().item<int64_t>();
  return {.coords = input.coords.slice(0, i, i + 1).slice(1, 0, length),
          .lengths = input.lengths.slice(0, i, i + 1),
          .fragments = input.fragments.slice(0, i, i + 1).slice(1, 0, size)};
}

protein::ProteinModel quiet_model() {
  at::set_num_threads(1);
  torch::manual_seed(3);
  protein::ProteinModel model(kSmall);
  model.eval();
  return model;
}

TEST(ProteinModel, HasTheNamesAndShapesOfTheOriginal) {
  const protein::ProteinModel model({});
  std::map<std::string, std::string> expected;
  std::ifstream file(PROTEIN_PARAMETERS);
  ASSERT_TRUE(file) << PROTEIN_PARAMETERS;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::string shape;
    std::getline(words, name, '\t');
    std::getline(words, shape, '\t');
    expected[name] = shape;
  }
  std::map<std::string, std::string> own;
  for (const auto& item : model.named_parameters()) {
    own[item.key()] = shape_text(item.value());
  }
  for (const auto& item : model.named_buffers()) {
    own[item.key()] = shape_text(item.value());
  }
  EXPECT_EQ(own, expected);
}

TEST(ProteinModel, HasTheParametersOfTheGuide) {
  const protein::ProteinModel model({});
  const auto children = model.named_children();
  EXPECT_EQ(num_values(*children["encoder"]), 1'034'688);
  EXPECT_EQ(num_values(*children["decoder"]), 3'385'432);
  EXPECT_EQ(num_values(model), 4'420'120);
}

// In the original all layers begin with the same.
TEST(ProteinModel, DrawsTheWeightsOfEveryAttention) {
  const protein::ProteinModel model(kSmall);
  const auto all = model.named_parameters();
  const std::string layers = "decoder.transformer_layers.layers.";
  EXPECT_FALSE(all[layers + "0.self_attn.in_proj_weight"].equal(
      all[layers + "1.self_attn.in_proj_weight"]));
  EXPECT_EQ(all[layers + "0.self_attn.in_proj_bias"].abs().sum().item<float>(),
            0);
}

TEST(ProteinModel, RefusesSizesThatDoNotFit) {
  EXPECT_THROW(protein::check_protein_config({.width = 16, .num_heads = 3}),
               ConfigError);
  EXPECT_THROW(protein::check_protein_config({.width = 15, .num_heads = 3}),
               ConfigError);
  EXPECT_THROW(protein::check_protein_config({.num_torsion_bins = 70}),
               ConfigError);
  EXPECT_NO_THROW(protein::check_protein_config({.num_torsion_bins = 36}));
}

TEST(ProteinModel, AProteinDoesNotDependOnItsBatch) {
  protein::ProteinModel model = quiet_model();
  const torch::NoGradGuard no_grad;
  const protein::ProteinInput input = random_input();
  const protein::FragmentLogits together = model.forward(input);
  for (int64_t i = 0; i < 4; ++i) {
    const protein::FragmentLogits own = model.forward(alone(input, i));
    const int64_t size = own.fragments.size(1);
    EXPECT_TRUE(own.fragments[0].allclose(
        together.fragments[i].slice(0, 0, size), 1e-4, 1e-5))
        << i;
    EXPECT_TRUE(own.torsions[0].allclose(together.torsions[i].slice(0, 0, size),
                                         1e-4, 1e-5))
        << i;
  }
  const Tensor order = torch::tensor({2, 0, 3, 1}, torch::kLong);
  const protein::FragmentLogits turned =
      model.forward({.coords = input.coords.index_select(0, order),
                     .lengths = input.lengths.index_select(0, order),
                     .fragments = input.fragments.index_select(0, order)});
  EXPECT_TRUE(turned.fragments.allclose(
      together.fragments.index_select(0, order), 1e-4, 1e-5));
}

TEST(ProteinModel, ComputesInDoublePrecision) {
  protein::ProteinModel model = quiet_model();
  const torch::NoGradGuard no_grad;
  protein::ProteinInput input = random_input();
  const Tensor single = model.forward(input).torsions;
  model.to(torch::kDouble);
  input.coords = input.coords.to(model.dtype());
  const Tensor exact = model.forward(input).torsions;
  EXPECT_EQ(exact.scalar_type(), torch::kDouble);
  const Tensor is_fragment =
      input.fragments.ne(protein::kPadFragment).unsqueeze(2);
  EXPECT_TRUE((single * is_fragment)
                  .to(torch::kDouble)
                  .allclose(exact * is_fragment, 1e-3, 1e-4));
}

TEST(ProteinModel, DropsOutWhileTrainingOnly) {
  protein::ProteinModel model = quiet_model();
  const protein::ProteinInput input = random_input();
  const auto twice_equal = [&] {
    return model.forward(input).fragments.equal(model.forward(input).fragments);
  };
  EXPECT_TRUE(twice_equal());
  model.train();
  EXPECT_FALSE(twice_equal());
}

TEST(ProteinModel, AProteinWithoutFragmentsHarmsNobody) {
  protein::ProteinModel model = quiet_model();
  model.train();
  protein::ProteinInput input = random_input();
  input.fragments[1].zero_();
  const protein::FragmentLogits logits = model.forward(input);
  const Tensor score = logits.fragments.sum() + logits.torsions.sum();
  score.backward();
  for (const auto& item : model.named_parameters()) {
    EXPECT_TRUE(item.value().grad().isfinite().all().item<bool>())
        << item.key();
  }
}

TEST(ProteinGraph, TakesTheNearestAndOfEqualsTheFirst) {
  // On a line: 0, 1, 2, 3, 4 and padding at 0.
  Tensor coords = torch::zeros({1, 7, 4, 3});
  coords[0].select(1, 1).select(1, 0).slice(0, 0, 5).copy_(
      torch::arange(5, torch::kFloat));
  const protein::ProteinGraph graph =
      protein::nearest_residues(coords, torch::tensor({5}, torch::kLong), 3);
  const Tensor expected = torch::tensor({{1, 2, 3},
                                         {0, 2, 3},
                                         {1, 3, 0},
                                         {2, 4, 1},
                                         {3, 2, 1},
                                         {5, 5, 5},
                                         {6, 6, 6}},
                                        torch::kLong);
  EXPECT_TRUE(graph.neighbours[0].equal(expected)) << graph.neighbours;
  EXPECT_EQ(graph.is_edge.sum().item<int64_t>(), 15);
  EXPECT_TRUE(graph.distances[0][0].equal(torch::tensor({1.0F, 2.0F, 3.0F})));
  EXPECT_EQ(graph.directions[0][2][0][0].item<float>(), -1);
  // 1 hears from 0, 2, 3 and 4: the order is that of the senders.
  const Tensor sums = protein::sum_incoming(
      torch::arange(21, torch::kDouble).unsqueeze(1), graph);
  EXPECT_EQ(sums[1].item<double>(), 0 + 6 + 11 + 14);
  EXPECT_EQ(sums[5].item<double>(), 0);
}

TEST(ProteinGraph, HasNoMoreNeighboursThanResidues) {
  const Tensor coords = random_coords(2, 3);
  const Tensor lengths = torch::tensor({3, 1}, torch::kLong);
  const protein::ProteinGraph graph =
      protein::nearest_residues(coords, lengths, 30);
  EXPECT_EQ(graph.neighbours.size(2), 2);
  EXPECT_EQ(graph.is_edge[0].sum().item<int64_t>(), 6);
  EXPECT_EQ(graph.is_edge[1].sum().item<int64_t>(), 0);
  const protein::ProteinGraph one = protein::nearest_residues(
      coords.slice(1, 0, 1), lengths.clamp_max(1), 30);
  EXPECT_EQ(one.is_edge.sum().item<int64_t>(), 0);
}

TEST(ProteinGraph, SumsHaveTheirGradient) {
  const protein::ProteinGraph graph = protein::nearest_residues(
      random_coords(2, 6), torch::tensor({6, 3}, torch::kLong), 3);
  const Tensor values =
      torch::randn({36, 2}, torch::kDouble).requires_grad_(true);
  const Tensor weights = torch::randn({12, 2}, torch::kDouble);
  (protein::sum_incoming(values, graph) * weights).sum().backward();
  for (int64_t edge = 0; edge < 36; ++edge) {
    const int64_t receiver = graph.receivers[edge].item<int64_t>();
    const Tensor expected =
        receiver >= 12 ? torch::zeros({2}, torch::kDouble) : weights[receiver];
    EXPECT_TRUE(values.grad()[edge].equal(expected)) << edge;
  }
}

struct Hidden {
  Tensor is_fragment;
  Tensor is_hidden;
};

Hidden hide(const protein::MaskingConfig& config, int64_t padded_to) {
  const Tensor counts = torch::tensor({40, 6, 1, 0, 3, 13}, torch::kLong);
  const Tensor is_fragment = torch::arange(padded_to) < counts.unsqueeze(1);
  SampleRandom random(torch::arange(6) + 11);
  return {is_fragment, protein::draw_hidden(is_fragment, config, random)};
}

TEST(ProteinMasking, HidesThePartThatWasAskedFor) {
  const Hidden made = hide({.ratio = 0.15}, 50);
  EXPECT_TRUE(made.is_hidden.sum(1).equal(
      torch::tensor({6, 1, 1, 0, 1, 1}, torch::kLong)));
  EXPECT_FALSE((made.is_hidden & ~made.is_fragment).any().item<bool>());
  EXPECT_TRUE(hide({.ratio = 1}, 50).is_hidden.equal(made.is_fragment));
}

TEST(ProteinMasking, DoesNotDependOnPadding) {
  for (const std::string strategy : {"random", "block"}) {
    const protein::MaskingConfig config = {.strategy = strategy};
    EXPECT_TRUE(
        hide(config, 40)
            .is_hidden.equal(hide(config, 61).is_hidden.slice(1, 0, 40)))
        << strategy;
  }
}

TEST(ProteinMasking, HidesEveryPlaceEquallyOften) {
  const Tensor is_fragment = torch::ones({20'000, 7}, torch::kBool);
  SampleRandom random(torch::arange(20'000));
  const Tensor part = protein::draw_hidden(is_fragment, {.ratio = 0.5}, random)
                          .to(torch::kDouble);
  EXPECT_LT((part.mean(0) - 3.0 / 7).abs().max().item<double>(), 0.02);
}

TEST(ProteinMasking, HidesBlocksOfFive) {
  const Hidden made = hide({.strategy = "block"}, 50);
  const Tensor counts = made.is_hidden.sum(1);
  EXPECT_GE(counts[0].item<int64_t>(), 5);
  EXPECT_LE(counts[0].item<int64_t>(), 15);
  // Those with five or fewer are hidden as a whole.
  EXPECT_EQ(counts[2].item<int64_t>(), 1);
  EXPECT_EQ(counts[3].item<int64_t>(), 0);
  EXPECT_EQ(counts[4].item<int64_t>(), 3);
  EXPECT_FALSE((made.is_hidden & ~made.is_fragment).any().item<bool>());
  // Also the first and the last place can be hidden.
  const Tensor many = torch::ones({500, 8}, torch::kBool);
  SampleRandom random(torch::arange(500));
  EXPECT_TRUE(protein::draw_hidden(many, {.strategy = "block"}, random)
                  .any(0)
                  .all()
                  .item<bool>());
}

TEST(ProteinLosses, ScoreWhatIsHiddenAndHasATorsion) {
  protein::FragmentLogits logits = {.fragments = torch::zeros({1, 4, 16}),
                                    .torsions = torch::zeros({1, 4, 72})};
  logits.fragments[0][1][5] = 100;
  logits.fragments[0][2][9] = 100;
  logits.torsions[0][0][71] = 100;
  logits.torsions[0][3][10] = 100;
  const protein::ProteinTargets targets = {
      .fragments = torch::tensor({{4, 5, 6, 7}}, torch::kLong),
      .is_hidden = torch::tensor({{true, true, true, false}}),
      .torsions = torch::tensor({{1, -1, -1, 13}}, torch::kLong)};
  const protein::ProteinLosses losses =
      protein::protein_losses(logits, targets);
  EXPECT_NEAR(losses.fragments.item<double>(), std::log(16) + 0 + 100, 1e-3);
  EXPECT_NEAR(losses.torsions.item<double>(), 200, 1e-3);
  const protein::ProteinHits hits = protein::protein_hits(logits, targets);
  EXPECT_EQ(hits.fragments.item<int64_t>(), 1);
  EXPECT_EQ(hits.torsions.item<int64_t>(), 0);
  // 71 and 1 are two bins apart, 10 and 13 three.
  EXPECT_EQ(hits.near_torsions.item<int64_t>(), 1);
}

TEST(ProteinInference, FillsEveryPlaceAndNoPadding) {
  protein::ProteinModel model = quiet_model();
  const torch::NoGradGuard no_grad;
  const protein::ProteinInput input = random_input();
  const protein::FragmentGuess guess =
      protein::guess_fragments(model, input, 4);
  const Tensor is_fragment = input.fragments.ne(protein::kPadFragment);
  EXPECT_TRUE(
      guess.fragments.ge(protein::kFirstChemicalFragment).equal(is_fragment));
  EXPECT_TRUE(
      guess.fragments.masked_select(~is_fragment).eq(0).all().item<bool>());
  EXPECT_TRUE(guess.torsions.ge(0).equal(is_fragment));
  EXPECT_TRUE(guess.probabilities.gt(0).equal(is_fragment));
  EXPECT_LE(guess.probabilities.max().item<double>(), 1);
  const protein::FragmentGuess again =
      protein::guess_fragments(model, input, 4);
  EXPECT_TRUE(again.fragments.equal(guess.fragments));
}

// What the fragments are makes no difference: they are hidden.
TEST(ProteinInference, DoesNotLookAtTheTruth) {
  protein::ProteinModel model = quiet_model();
  const torch::NoGradGuard no_grad;
  protein::ProteinInput input = random_input();
  const protein::FragmentGuess guess =
      protein::guess_fragments(model, input, 3);
  input.fragments =
      input.fragments.ne(protein::kPadFragment).to(torch::kLong) * 7;
  EXPECT_TRUE(protein::guess_fragments(model, input, 3)
                  .fragments.equal(guess.fragments));
}

TEST(ProteinInference, TakesStructuresWithoutSideChains) {
  protein::ProteinModel model = quiet_model();
  const protein::FragmentGuess guess = protein::guess_fragments(
      model,
      {.coords = random_coords(1, 5),
       .lengths = torch::tensor({5}, torch::kLong),
       .fragments = torch::zeros({1, 0}, torch::kLong)},
      3);
  EXPECT_EQ(guess.fragments.numel(), 0);
}

}  // namespace
}  // namespace lockstep
