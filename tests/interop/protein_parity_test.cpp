// The graph, the model, the loss terms, the gradients and the guesses of the
// recipe protein are those of an independent implementation; the other side is
// python/protein_reference.py.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/checkpoint.h"
#include "lockstep/models/protein/inference.h"
#include "lockstep/models/protein/losses.h"
#include "lockstep/models/protein/model.h"
#include "lockstep/models/protein/vocabulary.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace lockstep {
namespace {

using torch::Tensor;

constexpr double kTolerance = 1e-4;
constexpr int64_t kIterations = 7;

struct CaseConfig {
  std::string name;
  protein::ProteinConfig model;
  std::vector<int64_t> lengths;
  std::vector<int64_t> num_fragments;
};

// Proteins of unequal size, also smaller than a neighbourhood, of one residue,
// and with more fragments than the table of a checkpoint has places.
const std::vector<CaseConfig> kCases = {
    {"guide", {.dropout = 0}, {40, 33, 8}, {70, 81, 10}},
    {"small",
     {.width = 48,
      .encoder_depth = 2,
      .decoder_depth = 1,
      .num_heads = 3,
      .num_neighbours = 5,
      .dropout = 0},
     {17, 1, 2, 6},
     {20, 1, 3, 0}},
    {"long",
     {.width = 16,
      .encoder_depth = 1,
      .decoder_depth = 1,
      .num_heads = 2,
      .num_neighbours = 9,
      .dropout = 0},
     {90, 64},
     {1050, 100}},
};

struct Case {
  std::shared_ptr<protein::ProteinModel> model;
  protein::ProteinInput input;  // With some fragments hidden.
  Tensor fragments;
  Tensor torsions;
};

// A chain that walks at random, with bonds about as long as real ones.
Tensor random_backbone(int64_t length) {
  const Tensor steps = torch::randn({3 * length, 3});
  const Tensor chain =
      (1.4 * steps / steps.norm(2, {1}, true)).cumsum(0).view({length, 3, 3});
  const Tensor o = chain.slice(1, 2) + torch::randn({length, 1, 3});
  return torch::cat({chain, o}, 1);
}

Tensor is_before(const std::vector<int64_t>& counts, int64_t size) {
  return torch::arange(size) < torch::tensor(counts).unsqueeze(1);
}

Case make_case(const CaseConfig& config) {
  const auto batch = static_cast<int64_t>(config.lengths.size());
  const int64_t length = std::ranges::max(config.lengths);
  const int64_t size = std::ranges::max(config.num_fragments);
  Case made;
  made.model = std::make_shared<protein::ProteinModel>(config.model);
  {
    // Norms that begin as 1 and biases that begin as 0 would hide mistakes.
    const torch::NoGradGuard no_grad;
    for (Tensor& parameter : made.model->parameters()) {
      parameter.add_(0.05 * torch::randn_like(parameter));
    }
  }
  made.input.coords = torch::zeros({batch, length, 4, 3});
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t own = config.lengths[static_cast<size_t>(i)];
    made.input.coords[i].slice(0, 0, own).copy_(random_backbone(own));
  }
  made.input.lengths = torch::tensor(config.lengths);
  const Tensor is_fragment = is_before(config.num_fragments, size);
  made.fragments = torch::randint(protein::kFirstChemicalFragment,
                                  protein::kNumFragments, {batch, size}) *
                   is_fragment;
  made.torsions = torch::randint(0, 72, {batch, size})
                      .masked_fill(~is_fragment, -1)
                      .masked_fill(torch::rand({batch, size}) < 0.5, -1);
  made.input.fragments = made.fragments.masked_fill(
      is_fragment & (torch::rand({batch, size}) < 0.3), protein::kMaskFragment);
  return made;
}

Tree case_tree(const CaseConfig& config, const Case& made) {
  Tree tree;
  tree["sizes"]["hidden"] = config.model.width;
  tree["sizes"]["encoder_layers"] = config.model.encoder_depth;
  tree["sizes"]["decoder_layers"] = config.model.decoder_depth;
  tree["sizes"]["heads"] = config.model.num_heads;
  tree["sizes"]["neighbours"] = config.model.num_neighbours;
  tree["weights"] = module_state(*made.model);
  tree["coords"] = made.input.coords;
  tree["residues"] = made.input.lengths;
  tree["fragments"] = made.fragments;
  tree["torsions"] = made.torsions;
  tree["masked_ids"] = made.input.fragments;
  tree["iterations"] = kIterations;
  tree["lowest_id"] = protein::kFirstChemicalFragment;
  tree["keeps_guesses"] = int64_t{1};
  return tree;
}

void expect_close(const Tensor& ours, const Tensor& theirs,
                  const std::string& what, double tolerance = kTolerance) {
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << what;
  const double size = theirs.to(at::kDouble).norm().item<double>();
  const double error =
      (ours.to(at::kDouble) - theirs.to(at::kDouble)).norm().item<double>();
  EXPECT_LE(error, tolerance * size + 1e-12) << what << " of size " << size;
}

// The values of every protein, without padding.
void expect_equal_geometry(const CaseConfig& config, const Case& made,
                           const TreeView& theirs) {
  const Tensor angles =
      protein::backbone_angles(made.input.coords, made.input.lengths);
  const protein::ProteinGraph graph = protein::nearest_residues(
      made.input.coords, made.input.lengths, config.model.num_neighbours);
  for (int64_t i = 0; i < made.input.lengths.size(0); ++i) {
    SCOPED_TRACE(i);
    const TreeView own = theirs.at(std::to_string(i));
    const int64_t length = made.input.lengths[i].item<int64_t>();
    expect_close(angles[i].slice(0, 0, length), own.at("features").as_tensor(),
                 "angles", 1e-5);
    // Theirs are sorted by their ends.
    const Tensor by_end =
        graph.neighbours[i]
            .masked_fill(~graph.is_edge[i], made.input.coords.size(1))
            .argsort(/*dim=*/int64_t{1});
    const Tensor is_edge = graph.is_edge[i].gather(1, by_end);
    const Tensor ends = graph.neighbours[i].gather(1, by_end);
    const Tensor edges = own.at("edges").as_tensor();
    ASSERT_EQ(is_edge.sum().item<int64_t>(), edges.size(1));
    EXPECT_TRUE(is_edge.nonzero().select(1, 0).equal(edges[0]));
    EXPECT_TRUE(ends.masked_select(is_edge).equal(edges[1]));
    const Tensor directions =
        graph.directions[i].gather(1, by_end.unsqueeze(2).expand({-1, -1, 3}));
    expect_close(directions.index({is_edge}),
                 own.at("edge_features").as_tensor().slice(1, 32), "directions",
                 1e-5);
  }
}

void expect_equal_training(const Case& made, const TreeView& theirs) {
  const protein::FragmentLogits logits = made.model->forward(made.input);
  const Tensor is_fragment =
      made.fragments.ne(protein::kPadFragment).unsqueeze(2);
  const auto compare = [&](const Tensor& ours, const std::string& name) {
    expect_close(ours.detach() * is_fragment,
                 theirs.at(name).as_tensor() * is_fragment, name);
  };
  compare(logits.fragments, "type_logits");
  compare(logits.torsions, "torsion_logits");
  const Tensor is_hidden = made.input.fragments.eq(protein::kMaskFragment);
  const protein::ProteinTargets targets = {.fragments = made.fragments,
                                           .is_hidden = is_hidden,
                                           .torsions = made.torsions};
  const protein::ProteinLosses losses =
      protein::protein_losses(logits, targets);
  const TreeView terms = theirs.at("terms");
  const auto total = [&](const Tensor& sums, const Tensor& count,
                         const std::string& name) {
    expect_close(sums.sum().detach(), terms.at(name).at("sum").as_tensor(),
                 name);
    EXPECT_EQ(count.sum().item<int64_t>(),
              terms.at(name).at("normaliser").as_tensor().item<int64_t>());
    return sums.sum() / count.sum();
  };
  const Tensor loss = total(losses.fragments, targets.is_hidden, "fragment") +
                      total(losses.torsions, made.torsions.ge(0), "torsion");
  loss.backward();
  expect_close(loss.detach(), theirs.at("total").as_tensor(), "total");
  const TreeView gradients = theirs.at("gradients");
  size_t num_compared = 0;
  for (const auto& item : made.model->named_parameters()) {
    expect_close(item.value().grad(), gradients.at(item.key()).as_tensor(),
                 item.key());
    ++num_compared;
  }
  EXPECT_EQ(num_compared, gradients.as_dict().size());
}

void expect_equal_tables(const protein::ProteinModel& model,
                         const TreeView& theirs) {
  for (const auto& item : model.named_buffers()) {
    const Tensor table = theirs.at(item.key()).as_tensor();
    ASSERT_EQ(item.value().sizes(), table.sizes()) << item.key();
    EXPECT_LE((item.value() - table).abs().max().item<float>(), 1e-6F)
        << item.key();
  }
}

void expect_equal_guess(const Case& made, const TreeView& theirs) {
  const torch::NoGradGuard no_grad;
  made.model->eval();
  protein::ProteinInput input = made.input;
  input.fragments = made.fragments;
  const protein::FragmentGuess guess =
      protein::guess_fragments(*made.model, input, kIterations);
  EXPECT_TRUE(guess.fragments.equal(theirs.at("inferred").as_tensor()));
  EXPECT_TRUE(guess.torsions.equal(theirs.at("inferred_torsions").as_tensor()));
}

TEST(ProteinParity, GraphLossGradientsAndGuessesEqualThoseOfPython) {
  // Threads that wait for each other are slow where others work too.
  at::set_num_threads(1);
  torch::manual_seed(7);
  const testing::TempDir folder;
  Tree cases;
  std::vector<Case> made;
  for (const CaseConfig& config : kCases) {
    made.push_back(make_case(config));
    cases[config.name] = case_tree(config, made.back());
  }
  const auto in = folder.path() / "cases.pt";
  const auto out = folder.path() / "results.pt";
  save_checkpoint(in, cases);
  const auto python =
      testing::run({TORCH_PYTHON, PYTHON_SCRIPTS "/protein_reference.py",
                    in.string(), out.string()},
                   {.environment = {{"OMP_NUM_THREADS", "1"}}, .folder = ""});
  ASSERT_EQ(python.exit_code, 0) << python.err;
  const Tree results = load_checkpoint(out);
  for (size_t i = 0; i < kCases.size(); ++i) {
    SCOPED_TRACE(kCases[i].name);
    const TreeView theirs = results.at(kCases[i].name);
    expect_equal_geometry(kCases[i], made[i], theirs.at("geometry"));
    expect_equal_tables(*made[i].model, theirs.at("tables"));
    expect_equal_training(made[i], theirs);
    expect_equal_guess(made[i], theirs);
    // Back again, by name.
    protein::ProteinModel read(kCases[i].model);
    EXPECT_TRUE(load_module_state(read, theirs.at("model")).is_complete());
  }
  const TreeView guide = results.at("guide");
  EXPECT_EQ(guide.at("num_trainable").as_int(), 4'420'120);
  EXPECT_EQ(guide.at("num_encoder").as_int(), 1'034'688);
  EXPECT_EQ(guide.at("num_decoder").as_int(), 3'385'432);
}

}  // namespace
}  // namespace lockstep
