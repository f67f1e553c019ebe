#include "support/protein_files.h"

#include <fmt/format.h>
#include <zlib.h>

#include <stdexcept>

namespace lockstep::testing {

std::vector<AtomLine> atom_lines(
    const std::vector<proteins::GeneratedResidue>& chain) {
  std::vector<AtomLine> lines;
  int number = 0;
  for (const proteins::GeneratedResidue& residue : chain) {
    ++number;
    for (const proteins::GeneratedAtom& atom : residue.atoms) {
      lines.push_back({.name = atom.name,
                       .residue = residue.type,
                       .number = number,
                       .place = atom.place});
    }
  }
  return lines;
}

std::vector<AtomLine> chain_atoms(int64_t index) {
  return atom_lines(proteins::generated_chain({.seed = 7}, index));
}

std::string pdb_text(std::span<const AtomLine> atoms) {
  std::string text;
  int model = 0;
  int serial = 0;
  const bool has_models = !atoms.empty() && atoms.back().model > 1;
  for (const AtomLine& atom : atoms) {
    if (has_models && atom.model != model) {
      if (model > 0) text += "ENDMDL\n";
      model = atom.model;
      text += fmt::format("MODEL     {:4}\n", model);
    }
    constexpr int kSerials = 100'000;  // As many as the columns hold.
    // Names of up to three letters begin in the second column.
    const std::string name = atom.name.size() < 4 ? " " + atom.name : atom.name;
    text += fmt::format(
        "{:6}{:5} {:4}{}{:>3}{:>2}{:4}{}   {:8.3f}{:8.3f}{:8.3f}{:6.2f}{:6.2f}"
        "          {:>2}\n",
        atom.is_hetero ? "HETATM" : "ATOM", ++serial % kSerials, name,
        atom.altloc, atom.residue, atom.chain, atom.number, atom.insertion,
        atom.place[0], atom.place[1], atom.place[2], atom.occupancy, 20.0,
        atom.name.substr(0, 1));
  }
  if (has_models) text += "ENDMDL\n";
  return text + "END\n";
}

std::string mmcif_text(std::span<const AtomLine> atoms) {
  std::string text =
      "data_TEST\n#\nloop_\n_atom_site.group_PDB\n_atom_site.id\n"
      "_atom_site.type_symbol\n_atom_site.label_atom_id\n"
      "_atom_site.label_alt_id\n_atom_site.label_comp_id\n"
      "_atom_site.label_asym_id\n_atom_site.label_seq_id\n"
      "_atom_site.pdbx_PDB_ins_code\n_atom_site.Cartn_x\n"
      "_atom_site.Cartn_y\n_atom_site.Cartn_z\n_atom_site.occupancy\n"
      "_atom_site.B_iso_or_equiv\n_atom_site.auth_seq_id\n"
      "_atom_site.auth_asym_id\n_atom_site.pdbx_PDB_model_num\n";
  int serial = 0;
  for (const AtomLine& atom : atoms) {
    text += fmt::format(
        "{} {} {} {} {} {} {} {} {} {:.3f} {:.3f} {:.3f} {:.2f} 20.00 {} {} "
        "{}\n",
        atom.is_hetero ? "HETATM" : "ATOM", ++serial, atom.name.substr(0, 1),
        atom.name, atom.altloc == ' ' ? '.' : atom.altloc, atom.residue,
        atom.chain, atom.number, atom.insertion == ' ' ? '?' : atom.insertion,
        atom.place[0], atom.place[1], atom.place[2], atom.occupancy,
        atom.number, atom.chain, atom.model);
  }
  return text + "#\n";
}

std::string gzipped(const std::string& bytes) {
  constexpr int kGzip = 16;  // Added to the window's bits.
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                   MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2");
  }
  std::string result(deflateBound(&stream, bytes.size()), '\0');
  // zlib reads only, but its type does not say so.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

}  // namespace lockstep::testing
