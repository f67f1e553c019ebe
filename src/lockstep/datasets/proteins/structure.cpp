#include "lockstep/datasets/proteins/structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "lockstep/base/files.h"
#include "lockstep/base/strings.h"
#include "lockstep/datasets/proteins/coordinate_file.h"
#include "lockstep/error.h"
#include "lockstep/formats/gzip.h"
#include "lockstep/models/protein/torsion.h"
#include "lockstep/models/protein/vocabulary.h"

namespace lockstep::proteins {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCoordinates = 30;     // Columns of an ATOM line: three
constexpr size_t kCoordinateWidth = 8;  // numbers from here on.
constexpr size_t kUsedColumns = 76;     // With the segment; less the element.
constexpr size_t kEndOfCoordinates = 54;
constexpr std::array<const char*, 4> kBackboneAtoms = {"N", "CA", "C", "O"};

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
    const auto text = base::trim(
        line.substr(kCoordinates + i * kCoordinateWidth, kCoordinateWidth));
    const std::optional<double> value = base::parse_number(text);
    if (!value || !std::isfinite(*value)) {
      throw FormatError(fmt::format(
          "line {}: the coordinate '{}' is not a finite number", number, text));
    }
  }
}

bool is_atom(std::string_view line) {
  return line.starts_with("ATOM  ") || line.starts_with("HETATM");
}

// The lines that count, of the first model alone: gemmi would read all models,
// takes a coordinate that is not a number for 0 and stumbles over damage in
// lines that do not matter here.
std::string needed_lines(std::string_view text) {
  std::string lines;
  bool has_atoms = false;
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (has_atoms &&
        (line.starts_with("ENDMDL") || line.starts_with("MODEL ") ||
         base::trim(line) == "END")) {
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
    throw FormatError("it has no ATOM line and is not an mmCIF file");
  }
  return lines;
}

bool is_mmcif(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = base::trim(text.substr(0, end));
    if (!line.empty() && line.front() != '#') {
      return lower(std::string(line.substr(0, 5))) == "data_";
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return false;
}

FileChain parse(const std::string& text) {
  if (text.find('\0') != std::string::npos) {
    throw FormatError("it is not text: neither PDB nor mmCIF");
  }
  return is_mmcif(text) ? parse_mmcif(text) : parse_pdb(needed_lines(text));
}

const FileAtom* find_atom(const FileResidue& residue, std::string_view name) {
  const FileAtom* best = nullptr;
  for (const FileAtom& atom : residue.atoms) {
    if (atom.name != name) continue;
    if (best == nullptr || atom.occupancy > best->occupancy) best = &atom;
  }
  return best;
}

double measured_chi1(const FileResidue& residue) {
  const std::string_view last = protein::chi1_atom(residue.name);
  const FileAtom* n = find_atom(residue, "N");
  const FileAtom* ca = find_atom(residue, "CA");
  const FileAtom* cb = find_atom(residue, "CB");
  const FileAtom* x = last.empty() ? nullptr : find_atom(residue, last);
  if (cb == nullptr || x == nullptr) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double angle =
      protein::dihedral(n->place, ca->place, cb->place, x->place);
  if (!std::isfinite(angle)) {
    throw FormatError(
        fmt::format("a coordinate of the side chain of residue {} {} is not a "
                    "finite number",
                    residue.name, residue.id));
  }
  return angle;
}

// False: it does not count.
bool add_residue(const FileResidue& residue, Structure& structure) {
  if (!protein::is_residue_type(residue.name)) return false;
  std::array<const FileAtom*, kBackboneAtoms.size()> atoms{};
  for (size_t i = 0; i < atoms.size(); ++i) {
    atoms[i] = find_atom(residue, kBackboneAtoms[i]);
    if (atoms[i] == nullptr) return false;
  }
  for (const FileAtom* atom : atoms) {
    for (const double value : atom->place) {
      structure.backbone.push_back(static_cast<float>(value));
      if (std::isfinite(structure.backbone.back())) continue;
      throw FormatError(
          fmt::format("a coordinate of residue {} {} is not a finite number",
                      residue.name, residue.id));
    }
  }
  structure.chi1.push_back(measured_chi1(residue));
  structure.residue_types.push_back(residue.name);
  structure.residue_ids.push_back(residue.id);
  return true;
}

double occupancy(const FileResidue& residue) {
  const FileAtom* ca = find_atom(residue, "CA");
  return ca == nullptr ? -1 : ca->occupancy;
}

void add_chain(const FileChain& chain, Structure& structure) {
  const std::vector<FileResidue>& residues = chain.residues;
  for (size_t i = 0; i < residues.size();) {
    // Alternate residues have one number and follow each other.
    size_t best = i;
    size_t next = i + 1;
    for (; next < residues.size() && residues[next].id == residues[i].id;
         ++next) {
      if (occupancy(residues[next]) > occupancy(residues[best])) best = next;
    }
    if (!add_residue(residues[best], structure) && !residues[best].is_water) {
      ++structure.num_skipped;
    }
    i = next;
  }
}

// "DA, DC, DG and 3 more"
std::string some_of(const std::set<std::string>& names) {
  constexpr size_t kShown = 4;
  std::vector<std::string> shown(names.begin(), names.end());
  shown.resize(std::min(shown.size(), kShown));
  std::string text = base::join(shown, ", ");
  if (names.size() > kShown) {
    text += fmt::format(" and {} more", names.size() - kShown);
  }
  return text;
}

// What a chain without any residue that counts has instead.
std::string missing_text(const FileChain& chain) {
  std::set<std::string> missing;
  std::set<std::string> others;
  int64_t num_amino_acids = 0;
  for (const FileResidue& residue : chain.residues) {
    if (!protein::is_residue_type(residue.name)) {
      others.insert(residue.name);
      continue;
    }
    ++num_amino_acids;
    for (const char* atom : kBackboneAtoms) {
      if (find_atom(residue, atom) == nullptr) missing.insert(atom);
    }
  }
  if (num_amino_acids > 0) {
    return fmt::format("none of its {} amino acids is whole, missing are {}",
                       num_amino_acids, some_of(missing));
  }
  return fmt::format("it consists of {}", some_of(others));
}

Structure make_structure(const FileChain& chain, const fs::path& path) {
  Structure structure{.name = structure_name(path),
                      .chain = chain.name,
                      .resolution = chain.resolution,
                      .method = chain.method};
  add_chain(chain, structure);
  if (structure.num_residues() == 0) {
    throw FormatError(fmt::format(
        "no chain has a residue of the 20 amino acids with N, CA, C and O; "
        "chain '{}': {}",
        chain.name, missing_text(chain)));
  }
  return structure;
}

// Text of structures shrinks to about a fifth; more than this is not a
// structure.
uint64_t max_unzipped(uint64_t zipped) {
  constexpr uint64_t kLeast = 16 << 20;
  constexpr uint64_t kMost = 4ULL << 30;
  return std::clamp(100 * zipped, kLeast, kMost);
}

}  // namespace

Structure read_structure(std::string bytes, const fs::path& path) {
  try {
    if (formats::is_gzip(bytes))
      bytes = formats::gunzip(bytes, max_unzipped(bytes.size()));
    return make_structure(parse(bytes), path);
  } catch (const IoError&) {
    throw;
  } catch (const std::exception& error) {
    throw FormatError(fmt::format("{}: not a structure that can be used: {}",
                                  path.string(), error.what()));
  }
}

Structure read_structure(const fs::path& path) {
  return read_structure(base::read_file(path), path);
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
    return protein::Point3{backbone[first], backbone[first + 1],
                           backbone[first + 2]};
  };
  int64_t breaks = 0;
  for (size_t i = 1; i < backbone.size() / kResidue; ++i) {
    if (protein::distance(ca(i - 1), ca(i)) > limit) ++breaks;
  }
  return breaks;
}

}  // namespace lockstep::proteins
