#include "lockstep/models/protein/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "lockstep/error.h"

namespace lockstep::protein {
namespace {

constexpr std::array<std::string_view, kNumFragments> kNames = {
    "PAD",       "MASK",   "BOS",   "EOS",      "METHYL", "METHYLENE",
    "HYDROXYL",  "PHENYL", "AMINE", "CARBOXYL", "AMIDE",  "GUANIDINE",
    "IMIDAZOLE", "INDOLE", "THIOL", "BRANCH_CH"};

constexpr size_t kMaxFragments = 5;

struct ResidueType {
  std::string_view name;
  std::array<int64_t, kMaxFragments> fragments;  // Then zeros.
  std::string_view chi1;
};

// Serine, cysteine and isoleucine are as in the original project's files.
constexpr std::array<ResidueType, kNumResidueTypes> kTypes = {{
    {"ALA", {4}, ""},
    {"ARG", {5, 5, 5, 11}, "CG"},
    {"ASN", {5, 10}, "CG"},
    {"ASP", {5, 9}, "CG"},
    {"CYS", {14}, "SG"},
    {"GLN", {5, 5, 10}, "CG"},
    {"GLU", {5, 5, 9}, "CG"},
    {"GLY", {}, ""},
    {"HIS", {5, 12}, "CG"},
    {"ILE", {5, 15, 4, 5, 4}, "CG1"},
    {"LEU", {5, 15, 4, 4}, "CG"},
    {"LYS", {5, 5, 5, 5, 8}, "CG"},
    {"MET", {5, 5, 14, 4}, "CG"},
    {"PHE", {5, 7}, "CG"},
    {"PRO", {5, 5, 5}, "CG"},
    {"SER", {6}, "OG"},
    {"THR", {15, 6, 4}, "OG1"},
    {"TRP", {5, 13}, "CG"},
    {"TYR", {5, 7, 6}, "CG"},
    {"VAL", {15, 4, 4}, "CG1"},
}};

const ResidueType* find(std::string_view residue) {
  const auto found =
      std::ranges::lower_bound(kTypes, residue, {}, &ResidueType::name);
  return found != kTypes.end() && found->name == residue ? &*found : nullptr;
}

}  // namespace

std::string_view fragment_name(int64_t id) {
  LOCKSTEP_CHECK(id >= 0 && id < kNumFragments, fmt::format("fragment {}", id));
  return kNames[static_cast<size_t>(id)];
}

const std::array<std::string_view, kNumResidueTypes>& residue_types() {
  static constexpr auto kResidues = [] {
    std::array<std::string_view, kNumResidueTypes> names;
    for (size_t i = 0; i < names.size(); ++i) names[i] = kTypes[i].name;
    return names;
  }();
  return kResidues;
}

bool is_residue_type(std::string_view residue) {
  return find(residue) != nullptr;
}

std::span<const int64_t> fragments_of(std::string_view residue) {
  const ResidueType* type = find(residue);
  if (type == nullptr) return {};
  const auto end = std::ranges::find(type->fragments, kPadFragment);
  return {type->fragments.begin(), end};
}

std::string_view chi1_atom(std::string_view residue) {
  const ResidueType* type = find(residue);
  return type == nullptr ? std::string_view() : type->chi1;
}

}  // namespace lockstep::protein
