#include "lockstep/recipes/protein/structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <gemmi/cif.hpp>
#include <gemmi/mmcif.hpp>
#include <gemmi/pdb.hpp>
#include <limits>
#include <optional>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/formats/gzip.h"
#include "lockstep/recipes/protein/torsion.h"
#include "lockstep/recipes/protein/vocabulary.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCoordinates = 30;     // Columns of an ATOM line: three
constexpr size_t kCoordinateWidth = 8;  // numbers from here on.
constexpr size_t kUsedColumns = 76;     // With the segment; less the element.
constexpr size_t kEndOfCoordinates = 54;
constexpr std::array<const char*, 4> kBackbone = {"N", "CA", "C", "O"};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

void check_atom_line(std::string_view line, int64_t number) {
  if (line.size() < kEndOfCoordinates) {
    throw FormatError(fmt::format("line {} is cut short", number));
  }
  for (size_t i = 0; i < 3; ++i) {
    const auto text = trim(
        line.substr(kCoordinates + i * kCoordinateWidth, kCoordinateWidth));
    const std::optional<double> value = parse_number(text);
    if (!value || !std::isfinite(*value)) {
      throw FormatError(fmt::format(
          "line {}: the coordinate '{}' is no finite number", number, text));
    }
  }
}

bool is_atom(std::string_view line) {
  return line.starts_with("ATOM  ") || line.starts_with("HETATM");
}

// The lines that count, of the first model alone: gemmi would read all models,
// takes a coordinate that is no number for 0 and stumbles over damage in lines
// that do not matter here.
std::string needed_lines(std::string_view text) {
  std::string lines;
  bool has_atoms = false;
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (has_atoms && (line.starts_with("ENDMDL") ||
                      line.starts_with("MODEL ") || trim(line) == "END")) {
      break;
    }
    if (is_atom(line)) {
      check_atom_line(line, number);
      has_atoms = true;
    } else if (!line.starts_with("TER") && !line.starts_with("REMARK   2 ") &&
               !line.starts_with("REMARK   3 ") &&
               !line.starts_with("EXPDTA")) {
      continue;
    }
    lines.append(line.substr(0, kUsedColumns)).append("\n");
  }
  if (!has_atoms) {
    throw FormatError("it has no ATOM line and is no mmCIF file");
  }
  return lines;
}

bool is_mmcif(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = trim(text.substr(0, end));
    if (!line.empty() && line.front() != '#') {
      return lower(std::string(line.substr(0, 5))) == "data_";
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return false;
}

gemmi::Structure parse(const std::string& text) {
  if (text.find('\0') != std::string::npos) {
    throw FormatError("it is no text: neither PDB nor mmCIF");
  }
  if (!is_mmcif(text)) return gemmi::read_pdb_string(needed_lines(text), "pdb");
  const gemmi::cif::Document document =
      gemmi::cif::read_memory(text.data(), text.size(), "mmCIF");
  gemmi::Structure structure = gemmi::make_structure(document);
  const std::string* resolution =
      document.blocks[0].find_value("_em_3d_reconstruction.resolution");
  if (structure.resolution == 0 && resolution != nullptr) {
    structure.resolution = gemmi::cif::as_number(*resolution, 0);
  }
  return structure;
}

const gemmi::Atom* find_atom(const gemmi::Residue& residue,
                             std::string_view name) {
  const gemmi::Atom* best = nullptr;
  for (const gemmi::Atom& atom : residue.atoms) {
    if (atom.name != name) continue;
    if (best == nullptr || atom.occ > best->occ) best = &atom;
  }
  return best;
}

Point place_of(const gemmi::Atom& atom) {
  return {atom.pos.x, atom.pos.y, atom.pos.z};
}

std::string id_of(const gemmi::Residue& residue) {
  std::string id = std::to_string(*residue.seqid.num);
  if (residue.seqid.icode != ' ') id += residue.seqid.icode;
  return id;
}

double chi1_of(const gemmi::Residue& residue) {
  const std::string_view last = chi1_atom(residue.name);
  const gemmi::Atom* n = find_atom(residue, "N");
  const gemmi::Atom* ca = find_atom(residue, "CA");
  const gemmi::Atom* cb = find_atom(residue, "CB");
  const gemmi::Atom* x = last.empty() ? nullptr : find_atom(residue, last);
  if (cb == nullptr || x == nullptr) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double angle =
      dihedral(place_of(*n), place_of(*ca), place_of(*cb), place_of(*x));
  if (!std::isfinite(angle)) {
    throw FormatError(fmt::format(
        "a coordinate of the side chain of residue {} {} is no finite number",
        residue.name, id_of(residue)));
  }
  return angle;
}

// False: it does not count.
bool add_residue(const gemmi::Residue& residue, Structure& structure) {
  if (!is_residue_type(residue.name) || !residue.seqid.num) return false;
  std::array<const gemmi::Atom*, kBackbone.size()> atoms{};
  for (size_t i = 0; i < atoms.size(); ++i) {
    atoms[i] = find_atom(residue, kBackbone[i]);
    if (atoms[i] == nullptr) return false;
  }
  for (const gemmi::Atom* atom : atoms) {
    for (const double value : place_of(*atom)) {
      structure.backbone.push_back(static_cast<float>(value));
      if (std::isfinite(structure.backbone.back())) continue;
      throw FormatError(
          fmt::format("a coordinate of residue {} {} is no finite number",
                      residue.name, id_of(residue)));
    }
  }
  structure.chi1.push_back(chi1_of(residue));
  structure.residue_types.push_back(residue.name);
  structure.residue_ids.push_back(id_of(residue));
  return true;
}

double occupancy(const gemmi::Residue& residue) {
  const gemmi::Atom* ca = find_atom(residue, "CA");
  return ca == nullptr ? -1 : static_cast<double>(ca->occ);
}

void add_chain(const gemmi::Chain& chain, Structure& structure) {
  const std::vector<gemmi::Residue>& residues = chain.residues;
  for (size_t i = 0; i < residues.size();) {
    // Alternate residues have one number and follow each other.
    size_t best = i;
    size_t next = i + 1;
    for (; next < residues.size() && residues[next].seqid == residues[i].seqid;
         ++next) {
      if (occupancy(residues[next]) > occupancy(residues[best])) best = next;
    }
    if (!add_residue(residues[best], structure) && !residues[best].is_water()) {
      ++structure.num_skipped;
    }
    i = next;
  }
}

Structure first_chain(const gemmi::Structure& whole, const fs::path& path) {
  if (whole.models.empty() || whole.models[0].chains.empty()) {
    throw FormatError("it has no atoms");
  }
  const gemmi::Chain& chain = whole.models[0].chains[0];
  Structure structure{.name = structure_name(path), .chain = chain.name};
  if (std::isfinite(whole.resolution) && whole.resolution > 0) {
    structure.resolution = whole.resolution;
  }
  if (const auto method = whole.info.find("_exptl.method");
      method != whole.info.end()) {
    structure.method = method->second;
  }
  add_chain(chain, structure);
  if (structure.num_residues() == 0) {
    throw FormatError(fmt::format(
        "its first chain ({}) has no residue of the 20 amino acids with N, CA, "
        "C and O",
        chain.name));
  }
  return structure;
}

// Text of structures shrinks to about a fifth; more than this is no structure.
uint64_t max_unzipped(uint64_t zipped) {
  constexpr uint64_t kLeast = 16 << 20;
  constexpr uint64_t kMost = 4ULL << 30;
  return std::clamp(100 * zipped, kLeast, kMost);
}

}  // namespace

Structure read_structure(std::string bytes, const fs::path& path) {
  try {
    if (is_gzip(bytes)) bytes = gunzip(bytes, max_unzipped(bytes.size()));
    return first_chain(parse(bytes), path);
  } catch (const IoError&) {
    throw;
  } catch (const std::exception& error) {
    throw FormatError(fmt::format("{}: not a structure that can be used: {}",
                                  path.string(), error.what()));
  }
}

Structure read_structure(const fs::path& path) {
  return read_structure(read_file(path), path);
}

bool is_structure_name(const fs::path& path) {
  std::string name = lower(path.filename().string());
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return std::ranges::any_of(
      std::array{".pdb", ".ent", ".cif", ".mmcif"},
      [&name](const char* end) { return name.ends_with(end); });
}

std::string structure_name(const fs::path& path) {
  fs::path name = path.filename();
  if (lower(name.extension().string()) == ".gz") name = name.stem();
  if (is_structure_name(name) || name.extension() == ".pt") name = name.stem();
  return name.string();
}

int64_t count_chain_breaks(const std::vector<float>& backbone, double limit) {
  constexpr size_t kResidue = 12;  // Numbers.
  const auto ca = [&backbone](size_t residue) {
    const size_t first = residue * kResidue + 3;
    return Point{backbone[first], backbone[first + 1], backbone[first + 2]};
  };
  int64_t breaks = 0;
  for (size_t i = 1; i < backbone.size() / kResidue; ++i) {
    if (distance(ca(i - 1), ca(i)) > limit) ++breaks;
  }
  return breaks;
}

}  // namespace lockstep
