#include "lockstep/datasets/proteins/prediction.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>

#include "lockstep/models/protein/losses.h"
#include "lockstep/models/protein/torsion.h"
#include "lockstep/models/protein/vocabulary.h"

namespace lockstep::proteins {
namespace {

constexpr double kDegrees = 180 / std::numbers::pi;

// Predicted and true, as far as they are known.
struct Score {
  int64_t num_right = 0;
  int64_t num_scored = 0;

  void add(bool is_right) {
    ++num_scored;
    if (is_right) ++num_right;
  }
  // null when nothing was scored.
  nlohmann::ordered_json part() const {
    if (num_scored == 0) return nullptr;
    return static_cast<double>(num_right) / static_cast<double>(num_scored);
  }
};

struct Scores {
  Score fragments = {};
  Score torsions = {};
  Score near_torsions = {};
};

double bin_centre(int64_t bin, int64_t num_bins) {
  return 360 * (static_cast<double>(bin) + 0.5) /
             static_cast<double>(num_bins) -
         180;
}

std::string angle_text(double degrees) {
  return std::isnan(degrees) ? "" : fmt::format("{:.1f}", degrees);
}

std::string summary_of(const std::string& name, const KnownProtein& known,
                       const Scores& scores) {
  nlohmann::ordered_json summary;
  summary["name"] = name;
  summary["source"] = known.protein.source;
  summary["residues"] = known.protein.num_residues();
  summary["fragments"] = scores.fragments.num_scored;
  summary["recovery"] = scores.fragments.part();
  summary["torsions"] = scores.torsions.num_scored;
  summary["torsion_acc"] = scores.torsions.part();
  summary["torsion_near"] = scores.near_torsions.part();
  return summary.dump(2, ' ', /*ensure_ascii=*/false,
                      nlohmann::json::error_handler_t::replace) +
         "\n";
}

void score_torsion(int64_t guess, int64_t truth, int64_t num_bins,
                   Scores& scores) {
  if (truth < 0) return;
  const int64_t joined = truth * num_bins / protein::kNumTorsionBins;
  const int64_t way = std::abs(guess - joined);
  const int64_t off = std::min(way, num_bins - way);
  scores.torsions.add(off == 0);
  scores.near_torsions.add(off <= protein::kNearTorsionBins);
}

}  // namespace

KnownProtein read_known_protein(const std::filesystem::path& path) {
  KnownProtein known;
  if (is_structure_name(path)) {
    Structure structure = read_structure(path);
    known.protein = make_protein(structure, path);
    known.residue_ids = std::move(structure.residue_ids);
    for (const double angle : structure.chi1) {
      known.chi1.push_back(angle * kDegrees);
    }
    return known;
  }
  known.protein = read_protein_file(path);
  for (int64_t i = 0; i < known.protein.num_residues(); ++i) {
    known.residue_ids.push_back(std::to_string(i + 1));
  }
  known.chi1.assign(known.residue_ids.size(),
                    std::numeric_limits<double>::quiet_NaN());
  const std::vector<int64_t> bins = torsion_targets(known.protein);
  for (size_t i = 0; i < bins.size(); ++i) {
    if (bins[i] < 0) continue;
    const auto residue =
        static_cast<size_t>(known.protein.fragment_residues[i]);
    known.chi1.at(residue) = bin_centre(bins[i], protein::kNumTorsionBins);
  }
  return known;
}

std::vector<OutputFile> prediction_files(const std::string& name,
                                         const KnownProtein& known,
                                         const protein::FragmentGuess& guess,
                                         int64_t num_bins) {
  const Protein& protein = known.protein;
  const std::vector<int64_t> targets = torsion_targets(protein);
  const auto* fragments = guess.fragments.const_data_ptr<int64_t>();
  const auto* chances = guess.probabilities.const_data_ptr<double>();
  const auto* bins = guess.torsions.const_data_ptr<int64_t>();
  std::string table =
      "residue\ttype\tposition\tpredicted\tprobability\ttrue\tchi1\t"
      "true_chi1\n";
  Scores scores;
  for (size_t i = 0; i < protein.fragments.size(); ++i) {
    const int64_t residue = protein.fragment_residues[i];
    const auto row = static_cast<size_t>(residue);
    const bool is_first = i == 0 || protein.fragment_residues[i - 1] != residue;
    const bool has_chi1 =
        is_first && !protein::chi1_atom(protein.residue_types[row]).empty();
    scores.fragments.add(fragments[i] == protein.fragments[i]);
    score_torsion(bins[i], targets[i], num_bins, scores);
    table += fmt::format(
        "{}\t{}\t{}\t{}\t{:.4f}\t{}\t{}\t{}\n", known.residue_ids[row],
        protein.residue_types[row], i, protein::fragment_name(fragments[i]),
        chances[i], protein::fragment_name(protein.fragments[i]),
        has_chi1 ? angle_text(bin_centre(bins[i], num_bins)) : "",
        has_chi1 ? angle_text(known.chi1[row]) : "");
  }
  return {{.name = name + ".tsv", .bytes = table},
          {.name = name + ".json", .bytes = summary_of(name, known, scores)}};
}

}  // namespace lockstep::proteins
