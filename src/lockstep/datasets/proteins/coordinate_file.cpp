// Compiled as C++17: this version of gemmi is not C++20 to clang, for it has
// vectors of types that are not complete yet.
#include "lockstep/datasets/proteins/coordinate_file.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <gemmi/cif.hpp>
#include <gemmi/mmcif.hpp>
#include <gemmi/pdb.hpp>
#include <gemmi/resinfo.hpp>
#include <iterator>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/error.h"

namespace lockstep::proteins {
namespace {

std::string id_of(const gemmi::Residue& residue) {
  // Only a damaged residue has no number.
  std::string id = residue.seqid.num ? std::to_string(*residue.seqid.num) : "?";
  if (residue.seqid.icode != ' ') id += residue.seqid.icode;
  return id;
}

// As gemmi's own function, which takes time in proportion to the square of the
// number of parts.
void merge_chain_parts(gemmi::Model& model) {
  std::vector<gemmi::Chain> merged;
  std::unordered_map<std::string, size_t> places;
  for (gemmi::Chain& part : model.chains) {
    const auto [place, is_new] = places.emplace(part.name, merged.size());
    if (is_new) {
      merged.push_back(std::move(part));
      continue;
    }
    std::vector<gemmi::Residue>& residues = merged[place->second].residues;
    std::move(part.residues.begin(), part.residues.end(),
              std::back_inserter(residues));
  }
  model.chains = std::move(merged);
}

// The lines of a PDB file with those of a chain behind each other, in the order
// of their first atoms: gemmi looks every part of a chain up among all others.
std::string lines_by_chain(const std::string& text) {
  constexpr size_t kChainName = 20;    // Two columns.
  std::vector<std::string> groups(1);  // First what belongs to no chain.
  std::unordered_map<std::string, size_t> places;
  size_t current = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const bool is_atom = text.compare(begin, 6, "ATOM  ") == 0 ||
                         text.compare(begin, 6, "HETATM") == 0;
    if (is_atom) {
      std::string name = text.substr(begin + kChainName, 2);
      name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
      const auto found = places.emplace(std::move(name), groups.size()).first;
      current = found->second;
      if (current == groups.size()) groups.emplace_back();
    }
    const bool is_of_chain = is_atom || text.compare(begin, 3, "TER") == 0;
    groups[is_of_chain ? current : 0].append(text, begin, end - begin);
    begin = end;
  }
  std::string sorted;
  sorted.reserve(text.size());
  for (const std::string& group : groups) sorted += group;
  return sorted;
}

bool has_atom(const gemmi::Residue& residue, const char* name) {
  return std::any_of(
      residue.atoms.begin(), residue.atoms.end(),
      [name](const gemmi::Atom& atom) { return atom.name == name; });
}

// Less: is taken before. A chain of DNA may have an amino acid as its ligand.
using Rank = std::tuple<bool, bool, bool, size_t, std::string>;

Rank rank_of(const gemmi::Chain& chain) {
  int num_amino_acids = 0;
  int num_whole = 0;  // With a whole backbone.
  int num_nucleotides = 0;
  for (const gemmi::Residue& residue : chain.residues) {
    const auto info = gemmi::find_tabulated_residue(residue.name);
    if (info.is_nucleic_acid()) ++num_nucleotides;
    if (!info.is_amino_acid() || !info.is_standard()) continue;
    ++num_amino_acids;
    if (has_atom(residue, "N") && has_atom(residue, "CA") &&
        has_atom(residue, "C") && has_atom(residue, "O")) {
      ++num_whole;
    }
  }
  return {num_whole <= num_nucleotides, num_whole == 0, num_amino_acids == 0,
          chain.name.size(), chain.name};
}

const gemmi::Chain& chain_to_take(const gemmi::Model& model) {
  const gemmi::Chain* best = nullptr;
  Rank best_rank;
  for (const gemmi::Chain& chain : model.chains) {
    Rank rank = rank_of(chain);
    if (best != nullptr && !(rank < best_rank)) continue;
    best = &chain;
    best_rank = std::move(rank);
  }
  return *best;
}

FileChain read_chain(gemmi::Structure whole) {
  // Ligands and water of a chain stand behind the other chains.
  for (gemmi::Model& model : whole.models) merge_chain_parts(model);
  if (whole.models.empty() || whole.models[0].chains.empty()) {
    throw FormatError("it has no atoms");
  }
  const gemmi::Chain& chain = chain_to_take(whole.models[0]);
  FileChain result;
  result.name = chain.name;
  for (const gemmi::Residue& residue : chain.residues) {
    FileResidue read;
    read.name = residue.name;
    read.id = id_of(residue);
    read.is_water = residue.is_water();
    for (const gemmi::Atom& atom : residue.atoms) {
      FileAtom place;
      place.name = atom.name;
      place.occupancy = static_cast<double>(atom.occ);
      place.place = {atom.pos.x, atom.pos.y, atom.pos.z};
      read.atoms.push_back(std::move(place));
    }
    result.residues.push_back(std::move(read));
  }
  if (std::isfinite(whole.resolution) && whole.resolution > 0) {
    result.resolution = whole.resolution;
  }
  const auto method = whole.info.find("_exptl.method");
  if (method != whole.info.end()) result.method = method->second;
  return result;
}

struct AddedColumn {
  std::string tag = {};
  int source = -1;         // The column that it repeats, or
  std::string value = {};  // the same value in every row.
};

void add_columns(gemmi::cif::Loop& loop,
                 const std::vector<AddedColumn>& columns) {
  const size_t width = loop.width();
  std::vector<std::string> values;
  values.reserve(loop.length() * (width + columns.size()));
  for (size_t row = 0; row < loop.length(); ++row) {
    const size_t first = row * width;
    for (const AddedColumn& column : columns) {
      values.push_back(column.source < 0
                           ? column.value
                           : loop.values[first + size_t(column.source)]);
    }
    for (size_t i = 0; i < width; ++i) {
      values.push_back(std::move(loop.values[first + i]));
    }
  }
  std::vector<std::string> tags;
  for (const AddedColumn& column : columns) tags.push_back(column.tag);
  tags.insert(tags.end(), loop.tags.begin(), loop.tags.end());
  loop.tags = std::move(tags);
  loop.values = std::move(values);
}

// Residues that have no number of the authors' keep that of the sequence.
void fill_residue_numbers(gemmi::cif::Loop& loop, int own, int other) {
  if (own < 0 || other < 0) return;
  for (size_t row = 0; row < loop.length(); ++row) {
    std::string& number = loop.values[row * loop.width() + size_t(own)];
    if (gemmi::cif::is_null(number)) number = loop.val(row, size_t(other));
  }
}

// gemmi reads no atom unless all its columns are there. Some programs leave out
// those that others follow from (PyMOL: auth_seq_id).
void complete_atoms(gemmi::cif::Block& block) {
  gemmi::cif::Loop* loop = nullptr;
  for (const char* tag :
       {"_atom_site.Cartn_x", "_atom_site.id", "_atom_site.label_atom_id"}) {
    if (loop == nullptr) loop = block.find_loop(tag).get_loop();
  }
  if (loop == nullptr) throw FormatError("it has no table _atom_site");
  const auto find = [loop](const char* name) {
    return loop->find_tag(std::string("_atom_site.") + name);
  };
  for (const char* name : {"Cartn_x", "Cartn_y", "Cartn_z"}) {
    if (find(name) >= 0) continue;
    throw FormatError(std::string("its table _atom_site has no column ") +
                      name);
  }
  const int number = find("label_seq_id");
  if (find("auth_seq_id") < 0 && number < 0) {
    throw FormatError(
        "its table _atom_site has no column auth_seq_id and no label_seq_id");
  }
  fill_residue_numbers(*loop, find("auth_seq_id"), number);
  std::vector<AddedColumn> added;
  const auto add = [&](const char* name, int source, const char* value) {
    if (find(name) >= 0) return;
    added.push_back({std::string("_atom_site.") + name, source, value});
  };
  add("auth_seq_id", number, "");
  add("label_asym_id", find("auth_asym_id"), ".");
  add("id", -1, "0");
  add("type_symbol", -1, "X");
  add("label_alt_id", -1, ".");
  add("occupancy", -1, "1");
  add("B_iso_or_equiv", -1, "0");
  if (!added.empty()) add_columns(*loop, added);
}

// gemmi throws errors of the standard library.
template <typename Read>
FileChain read_by_gemmi(const Read& read) {
  try {
    return read_chain(read());
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw FormatError(error.what());
  }
}

}  // namespace

FileChain parse_pdb(const std::string& text) {
  return read_by_gemmi(
      [&] { return gemmi::read_pdb_string(lines_by_chain(text), "pdb"); });
}

FileChain parse_mmcif(const std::string& text) {
  return read_by_gemmi([&] {
    gemmi::cif::Document document =
        gemmi::cif::read_memory(text.data(), text.size(), "mmCIF");
    complete_atoms(document.blocks.at(0));
    gemmi::Structure structure = gemmi::make_structure(document);
    const std::string* resolution =
        document.blocks[0].find_value("_em_3d_reconstruction.resolution");
    if (structure.resolution == 0 && resolution != nullptr) {
      structure.resolution = gemmi::cif::as_number(*resolution, 0);
    }
    return structure;
  });
}

}  // namespace lockstep::proteins
