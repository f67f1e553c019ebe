#include "lockstep/datasets/proteins/cache_file.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <system_error>
#include <utility>

#include "lockstep/checkpoint.h"
#include "lockstep/error.h"
#include "lockstep/formats/torch_file.h"
#include "lockstep/models/protein/torsion.h"
#include "lockstep/models/protein/vocabulary.h"

namespace lockstep::proteins {
namespace {

namespace fs = std::filesystem;

// The original's keys, and three additional ones after them.
constexpr const char* kBackboneKey = "backbone_coords";
constexpr const char* kFragments = "fragment_token_ids";
constexpr const char* kTorsions = "torsion_bins";
constexpr const char* kResidueTypes = "residue_types";
constexpr const char* kLength = "sequence_length";
constexpr const char* kSource = "pdb_path";
constexpr const char* kFragmentResidues = "fragment_residue_idx";
constexpr const char* kTorsionResidues = "torsion_residue_idx";
constexpr const char* kResolution = "resolution";

void require(bool is_right, const std::string& message) {
  if (!is_right) throw FormatError(message);
}

std::vector<int64_t> integers_at(const TreeView& view) {
  const at::Tensor& tensor = view.as_tensor();
  require(tensor.dim() == 1 && at::isIntegralType(tensor.scalar_type(), false),
          fmt::format("'{}' is not a list of integers", view.path()));
  const at::Tensor numbers = tensor.to(at::kLong).contiguous();
  const auto* first = numbers.const_data_ptr<int64_t>();
  return {first, first + numbers.numel()};
}

void require_below(const std::vector<int64_t>& numbers, int64_t end,
                   const char* key) {
  const auto bad = std::ranges::find_if(
      numbers, [end](int64_t number) { return number < 0 || number >= end; });
  if (bad == numbers.end()) return;
  throw FormatError(
      fmt::format("'{}' holds {}, expected 0 to {}", key, *bad, end - 1));
}

std::vector<float> backbone_at(const TreeView& view) {
  const at::Tensor& tensor = view.as_tensor();
  require(tensor.dim() == 3 && tensor.size(1) == 4 && tensor.size(2) == 3 &&
              tensor.is_floating_point(),
          fmt::format("'{}' is not [L, 4, 3] of numbers", view.path()));
  const at::Tensor places = tensor.to(at::kFloat).contiguous();
  require(at::isfinite(places).all().item<bool>(),
          fmt::format("'{}' holds a number that is not finite", view.path()));
  const auto* first = places.const_data_ptr<float>();
  return {first, first + places.numel()};
}

// For either kind of tree.
template <typename View>
std::vector<std::string> residue_types_at(const View& tree) {
  std::vector<std::string> types;
  const View view = tree.at(kResidueTypes);
  for (const auto& item : view.as_list()) {
    types.push_back(View(item, kResidueTypes).as_string());
    require(protein::is_residue_type(types.back()),
            fmt::format("residue {} is '{}', none of the 20 amino acids",
                        types.size() - 1, types.back()));
  }
  return types;
}

void check_length(const TreeView& view, int64_t expected) {
  int64_t length = 0;
  if (const auto* tensor = view.value().get_if<at::Tensor>()) {
    require(tensor->numel() == 1 &&
                at::isIntegralType(tensor->scalar_type(), false),
            fmt::format("'{}' is not an integer", view.path()));
    length = tensor->item<int64_t>();
  } else {
    length = view.as_int();
  }
  require(length == expected,
          fmt::format("'{}' is {}, but '{}' has {} residues", view.path(),
                      length, kResidueTypes, expected));
}

// Derived from the residues, for files without it.
void derive_fragment_residues(Protein& protein) {
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < protein.num_residues(); ++i) {
    for (const int64_t fragment :
         protein::fragments_of(protein.residue_types[static_cast<size_t>(i)])) {
      expected.push_back(fragment);
      protein.fragment_residues.push_back(i);
    }
  }
  require(expected == protein.fragments,
          fmt::format("'{}' does not follow from '{}': another version wrote "
                      "it; make it anew with `lockstep prepare protein`",
                      kFragments, kResidueTypes));
}

std::vector<int64_t> residues_with_chi1(
    const std::vector<std::string>& residue_types) {
  std::vector<int64_t> residues;
  for (size_t i = 0; i < residue_types.size(); ++i) {
    if (protein::chi1_atom(residue_types[i]).empty()) continue;
    residues.push_back(static_cast<int64_t>(i));
  }
  return residues;
}

void read_torsion_residues(const Tree& tree, Protein& protein) {
  if (tree.find(kTorsionResidues) != nullptr) {
    protein.torsion_residues = integers_at(tree.at(kTorsionResidues));
    require_below(*protein.torsion_residues, protein.num_residues(),
                  kTorsionResidues);
    require(protein.torsion_residues->size() == protein.torsion_bins.size(),
            fmt::format("'{}' and '{}' differ in length", kTorsionResidues,
                        kTorsions));
    return;
  }
  std::vector<int64_t> residues = residues_with_chi1(protein.residue_types);
  if (residues.size() == protein.torsion_bins.size()) {
    protein.torsion_residues = std::move(residues);
  }
}

Protein protein_of(const Tree& tree) {
  Protein protein{.source = tree.at(kSource).as_string(),
                  .residue_types = residue_types_at(TreeView(tree)),
                  .backbone = backbone_at(tree.at(kBackboneKey)),
                  .fragments = integers_at(tree.at(kFragments)),
                  .torsion_bins = integers_at(tree.at(kTorsions))};
  require(std::ssize(protein.backbone) == 12 * protein.num_residues(),
          fmt::format("'{}' and '{}' differ in length", kBackboneKey,
                      kResidueTypes));
  check_length(tree.at(kLength), protein.num_residues());
  require_below(protein.fragments, protein::kNumFragments, kFragments);
  require_below(protein.torsion_bins, protein::kNumTorsionBins, kTorsions);
  if (tree.find(kFragmentResidues) != nullptr) {
    protein.fragment_residues = integers_at(tree.at(kFragmentResidues));
    require_below(protein.fragment_residues, protein.num_residues(),
                  kFragmentResidues);
    require(protein.fragment_residues.size() == protein.fragments.size(),
            fmt::format("'{}' and '{}' differ in length", kFragmentResidues,
                        kFragments));
  } else {
    derive_fragment_residues(protein);
  }
  read_torsion_residues(tree, protein);
  if (tree.find(kResolution) != nullptr) {
    protein.resolution = tree.at(kResolution).as_double();
  }
  return protein;
}

int64_t first_size(const BasicView<formats::TensorRecord>& view) {
  const formats::TensorRecord& tensor = view.as_tensor();
  require(!tensor.shape.empty(),
          fmt::format("'{}' is a number, expected a tensor", view.path()));
  return tensor.shape[0];
}

ProteinFacts protein_facts(const formats::Value& value) {
  const std::vector<std::string> types =
      residue_types_at(BasicView<formats::TensorRecord>(value));
  ProteinFacts facts{.source = value.at(kSource).as_string(),
                     .num_residues = std::ssize(types),
                     .num_fragments = first_size(value.at(kFragments)),
                     .num_torsions = first_size(value.at(kTorsions))};
  facts.has_aligned_torsions =
      value.find(kTorsionResidues) != nullptr ||
      facts.num_torsions == std::ssize(residues_with_chi1(types));
  return facts;
}

// Names the file in errors that do not.
template <typename Read>
auto read_as_protein(const fs::path& path, const Read& read) {
  try {
    return read();
  } catch (const FormatError& error) {
    const std::string text = error.what();
    if (text.find(path.string()) != std::string::npos) throw;
    throw FormatError(
        fmt::format("{}: no protein of `lockstep prepare protein`: {}",
                    path.string(), text));
  }
}

}  // namespace

Protein make_protein(const Structure& structure, const fs::path& source) {
  Protein protein{.source = source.string(),
                  .residue_types = structure.residue_types,
                  .backbone = structure.backbone,
                  .resolution = structure.resolution};
  protein.torsion_residues.emplace();
  for (int64_t i = 0; i < structure.num_residues(); ++i) {
    const auto at = static_cast<size_t>(i);
    for (const int64_t id :
         protein::fragments_of(structure.residue_types[at])) {
      protein.fragments.push_back(id);
      protein.fragment_residues.push_back(i);
    }
    if (std::isnan(structure.chi1[at])) continue;
    protein.torsion_bins.push_back(protein::torsion_bin(structure.chi1[at]));
    protein.torsion_residues->push_back(i);
  }
  return protein;
}

std::vector<int64_t> torsion_targets(const Protein& protein) {
  std::vector<int64_t> targets(protein.fragments.size(), -1);
  if (!protein.torsion_residues) return targets;
  std::vector<int64_t> bins(protein.residue_types.size(), -1);
  for (size_t i = 0; i < protein.torsion_bins.size(); ++i) {
    bins[static_cast<size_t>((*protein.torsion_residues)[i])] =
        protein.torsion_bins[i];
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    // Taken once: by the residue's first fragment.
    targets[i] = std::exchange(
        bins[static_cast<size_t>(protein.fragment_residues[i])], -1);
  }
  return targets;
}

void write_protein_file(const fs::path& path, const Protein& protein) {
  Tree tree;
  tree[kBackboneKey] =
      at::tensor(protein.backbone).view({protein.num_residues(), 4, 3});
  tree[kFragments] = at::tensor(protein.fragments);
  tree[kTorsions] = at::tensor(protein.torsion_bins);
  tree[kResidueTypes] =
      Tree::list({protein.residue_types.begin(), protein.residue_types.end()});
  tree[kLength] = at::scalar_tensor(protein.num_residues(), at::kLong);
  tree[kSource] = protein.source;
  tree[kFragmentResidues] = at::tensor(protein.fragment_residues);
  if (protein.torsion_residues) {
    tree[kTorsionResidues] = at::tensor(*protein.torsion_residues);
  }
  if (protein.resolution) tree[kResolution] = *protein.resolution;
  save_checkpoint(path, tree);
}

Protein read_protein_file(const fs::path& path) {
  return read_as_protein(path,
                         [&] { return protein_of(load_checkpoint(path)); });
}

ProteinFacts read_protein_facts(const fs::path& path) {
  return read_as_protein(path, [&] {
    return protein_facts(
        formats::read_torch_file(path, formats::TorchFileCheck::kStructure));
  });
}

bool is_up_to_date(const fs::path& file, const fs::path& structure) {
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  if (error) return false;
  const auto changed = fs::last_write_time(structure, error);
  return !error && written >= changed;
}

bool is_made_of(const std::string& source, const fs::path& structure) {
  return fs::path(source).filename() == structure.filename();
}

}  // namespace lockstep::proteins
