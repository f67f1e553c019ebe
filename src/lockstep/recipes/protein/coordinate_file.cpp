// Compiled as C++17: this version of gemmi is not C++20 to clang, for it has
// vectors of types that are not complete yet.
#include "lockstep/recipes/protein/coordinate_file.h"

#include <cmath>
#include <exception>
#include <gemmi/cif.hpp>
#include <gemmi/mmcif.hpp>
#include <gemmi/pdb.hpp>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

std::string id_of(const gemmi::Residue& residue) {
  // Only a residue without a number of its own has none: a mistake.
  std::string id = residue.seqid.num ? std::to_string(*residue.seqid.num) : "?";
  if (residue.seqid.icode != ' ') id += residue.seqid.icode;
  return id;
}

FileChain first_chain(gemmi::Structure whole) {
  // Ligands and water of a chain stand behind the other chains.
  whole.merge_chain_parts();
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
  return read_by_gemmi([&] { return gemmi::read_pdb_string(text, "pdb"); });
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
