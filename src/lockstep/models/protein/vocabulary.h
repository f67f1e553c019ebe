// Side chains as words: each of the 20 amino acids is a few rigid fragments.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep::protein {

constexpr int64_t kPadFragment = 0;
constexpr int64_t kMaskFragment = 1;
// Ids from here on are chemical fragments; the four before are special tokens.
constexpr int64_t kFirstChemicalFragment = 4;
constexpr int64_t kNumFragments = 16;

// By id; capital letters: "PAD", "METHYL".
std::string_view fragment_name(int64_t id);

constexpr int64_t kNumResidueTypes = 20;

// The three-letter codes, "ALA" first, in alphabetical order.
const std::array<std::string_view, kNumResidueTypes>& residue_types();

bool is_residue_type(std::string_view residue);

// In order, from the backbone outwards; none for glycine and for names that are
// not residue types.
std::span<const int64_t> fragments_of(std::string_view residue);

// The atom X of the torsion N-CA-CB-X, chi1: "CG", "OG1". Empty: the residue
// has no chi1.
std::string_view chi1_atom(std::string_view residue);

}  // namespace lockstep::protein
