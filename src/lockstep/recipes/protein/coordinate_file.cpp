// Compiled as C++17: this version of gemmi is not C++20 to clang, for it has
// vectors of types that are not complete yet.
#include "lockstep/recipes/protein/coordinate_file.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <gemmi/cif.hpp>
#include <gemmi/mmcif.hpp>
#include <gemmi/pdb.hpp>
#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

std::string id_of(const gemmi::Residue& residue) {
  // Only a residue without a number of its own has none: a mistake.
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

FileChain first_chain(gemmi::Structure whole) {
  // Ligands and water of a chain stand behind the other chains.
  for (gemmi::Model& model : whole.models) merge_chain_parts(model);
  if (whole.models.empty() || whole.models[0].chains.empty()) {
    throw FormatError("it has no atoms");
  }
  const gemmi::Chain& chain = whole.models[0].chains[0];
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

// gemmi throws errors of the standard library.
template <typename Read>
FileChain read_by_gemmi(const Read& read) {
  try {
    return first_chain(read());
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
    const gemmi::cif::Document document =
        gemmi::cif::read_memory(text.data(), text.size(), "mmCIF");
    gemmi::Structure structure = gemmi::make_structure(document);
    const std::string* resolution =
        document.blocks[0].find_value("_em_3d_reconstruction.resolution");
    if (structure.resolution == 0 && resolution != nullptr) {
      structure.resolution = gemmi::cif::as_number(*resolution, 0);
    }
    return structure;
  });
}

}  // namespace lockstep
