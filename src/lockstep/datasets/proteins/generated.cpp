#include "lockstep/datasets/proteins/generated.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>

#include "lockstep/models/protein/vocabulary.h"
#include "lockstep/random.h"

namespace lockstep::proteins {
namespace {

constexpr double radians(double degrees) {
  return degrees * std::numbers::pi / 180;
}

// A way in which the chain can turn at a residue.
struct Basin {
  double phi = 0;  // Degrees, with their noise's deviation.
  double psi = 0;
  double noise = 0;
  std::array<std::string_view, 3> residues = {};  // Most likely first.
};

constexpr std::array<Basin, 6> kBasins = {{
    {-63, -42, 5, {"LEU", "GLU", "LYS"}},   // helix
    {-120, 130, 9, {"VAL", "THR", "TYR"}},  // strand
    {-70, 145, 9, {"PRO", "SER", "ALA"}},   // extended turn
    {-85, -5, 9, {"ASP", "ARG", "HIS"}},    // turn
    {57, 42, 7, {"GLY", "ASN", "GLN"}},     // left-handed turn
    {-140, 165, 7, {"ILE", "PHE", "TRP"}},  // wide strand
}};
constexpr size_t kHelix = 0;
constexpr size_t kStrand = 1;
constexpr size_t kFirstTurn = 2;

// How likely the three are; else any of the 20.
constexpr std::array<double, 3> kLikely = {0.55, 0.25, 0.12};
// The likeliest rotamer, then the two others together.
constexpr double kLikelyRotamer = 0.85;
constexpr double kRotamerNoise = 1.5;  // Degrees; a bin has 5.

using Draw = RandomStream;

// One basin per residue: segments of one kind, with turns between them.
std::vector<size_t> draw_basins(size_t length, Draw& draw) {
  std::vector<size_t> basins;
  while (basins.size() < length) {
    const bool is_helix = draw.chance(0.5);
    const int64_t segment =
        is_helix ? 6 + draw.integer(9) : 4 + draw.integer(5);
    basins.insert(basins.end(), static_cast<size_t>(segment),
                  is_helix ? kHelix : kStrand);
    const int64_t turns = 2 + draw.integer(4);
    for (int64_t i = 0; i < turns; ++i) {
      basins.push_back(kFirstTurn + static_cast<size_t>(draw.integer(
                                        std::ssize(kBasins) -
                                        static_cast<int64_t>(kFirstTurn))));
    }
  }
  basins.resize(length);
  return basins;
}

std::string draw_residue(const Basin& basin, Draw& draw) {
  double left = draw.uniform();
  for (size_t i = 0; i < kLikely.size(); ++i) {
    if (left < kLikely[i]) return std::string(basin.residues[i]);
    left -= kLikely[i];
  }
  return std::string(protein::residue_types()[static_cast<size_t>(
      draw.integer(protein::kNumResidueTypes))]);
}

// gauche minus, trans, gauche plus, each in the middle of a bin.
constexpr std::array<double, 3> kRotamers = {-62.5, 177.5, 62.5};

// Which one is likely depends on the residue and on the chain's turn.
double draw_chi1(std::string_view residue, size_t basin, Draw& draw) {
  const bool is_branched =
      residue == "VAL" || residue == "ILE" || residue == "THR";
  const bool is_polar = residue == "SER" || residue == "CYS";
  size_t likely = basin == kHelix || basin == 3 ? 0 : 1;
  if (is_branched) likely = basin == kHelix ? 1 : 0;
  if (is_polar) likely = 2;
  size_t rotamer = likely;
  if (!draw.chance(kLikelyRotamer)) {
    rotamer = (likely + 1 + static_cast<size_t>(draw.integer(2))) % 3;
  }
  return radians(kRotamers[rotamer] + kRotamerNoise * draw.normal());
}

struct Backbone {
  protein::Point3 n = {};
  protein::Point3 ca = {};
  protein::Point3 c = {};
};

// The next residue behind one with this psi.
Backbone extend(const Backbone& last, double psi, double phi) {
  Backbone next;
  next.n = protein::place_atom(
      last.n, last.ca, last.c,
      {.length = 1.329, .angle = radians(117.2), .torsion = psi});
  next.ca = protein::place_atom(
      last.ca, last.c, next.n,
      {.length = 1.458, .angle = radians(121.7), .torsion = std::numbers::pi});
  next.c = protein::place_atom(
      last.c, next.n, next.ca,
      {.length = 1.525, .angle = radians(111), .torsion = phi});
  return next;
}

GeneratedResidue add_atoms(const Backbone& bone, const std::string& type,
                           double psi) {
  GeneratedResidue residue{.type = type,
                           .atoms = {{.name = "N", .place = bone.n},
                                     {.name = "CA", .place = bone.ca},
                                     {.name = "C", .place = bone.c}}};
  // Opposite to the next N.
  const protein::Point3 o =
      protein::place_atom(bone.n, bone.ca, bone.c,
                          {.length = 1.231,
                           .angle = radians(120.1),
                           .torsion = psi + std::numbers::pi});
  residue.atoms.push_back({.name = "O", .place = o});
  return residue;
}

double length_to(std::string_view atom) {
  if (atom.starts_with("S")) return 1.81;
  return atom.starts_with("O") ? 1.42 : 1.52;
}

void add_side_chain(const Backbone& bone, size_t basin, Draw& draw,
                    GeneratedResidue& residue) {
  if (residue.type == "GLY") return;
  // Left-handed amino acids: seen so, CB is where natural ones have it.
  const protein::Point3 cb = protein::place_atom(
      bone.c, bone.n, bone.ca,
      {.length = 1.53, .angle = radians(110.5), .torsion = radians(-122.6)});
  residue.atoms.push_back({.name = "CB", .place = cb});
  const std::string_view last = protein::chi1_atom(residue.type);
  if (last.empty()) return;
  const protein::Point3 x =
      protein::place_atom(bone.n, bone.ca, cb,
                          {.length = length_to(last),
                           .angle = radians(112),
                           .torsion = draw_chi1(residue.type, basin, draw)});
  residue.atoms.push_back({.name = std::string(last), .place = x});
}

double generated_chi1(const GeneratedResidue& residue) {
  constexpr size_t kWithChi1 = 6;  // Atoms.
  if (residue.atoms.size() < kWithChi1) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return protein::dihedral(residue.atoms[0].place, residue.atoms[1].place,
                           residue.atoms[4].place, residue.atoms[5].place);
}

}  // namespace

std::vector<GeneratedResidue> generated_chain(
    const GeneratedChainConfig& config, int64_t index) {
  Draw draw(sample_seed(config.seed, /*epoch=*/0, index));
  const int64_t length =
      config.min_residues +
      draw.integer(config.max_residues - config.min_residues + 1);
  const std::vector<size_t> basins =
      draw_basins(static_cast<size_t>(length), draw);
  std::vector<GeneratedResidue> chain;
  Backbone bone{.n = {0, 0, 0},
                .ca = {1.458, 0, 0},
                .c = {1.458 - 1.525 * std::cos(radians(111)),
                      1.525 * std::sin(radians(111)), 0}};
  double last_psi = 0;
  for (const size_t kind : basins) {
    const Basin& basin = kBasins[kind];
    const double phi = radians(basin.phi + basin.noise * draw.normal());
    const double psi = radians(basin.psi + basin.noise * draw.normal());
    if (!chain.empty()) bone = extend(bone, last_psi, phi);
    GeneratedResidue residue = add_atoms(bone, draw_residue(basin, draw), psi);
    add_side_chain(bone, kind, draw, residue);
    chain.push_back(std::move(residue));
    last_psi = psi;
  }
  return chain;
}

Structure generated_structure(const GeneratedChainConfig& config,
                              int64_t index) {
  Structure structure{.name = fmt::format("generated_{}", index), .chain = "A"};
  for (const GeneratedResidue& residue : generated_chain(config, index)) {
    structure.residue_types.push_back(residue.type);
    structure.residue_ids.push_back(std::to_string(structure.num_residues()));
    for (size_t atom = 0; atom < 4; ++atom) {
      for (const double value : residue.atoms[atom].place) {
        structure.backbone.push_back(static_cast<float>(value));
      }
    }
    structure.chi1.push_back(generated_chi1(residue));
  }
  return structure;
}

}  // namespace lockstep::proteins
