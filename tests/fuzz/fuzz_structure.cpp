#include "fuzz/target.h"
#include "lockstep/datasets/proteins/structure.h"

// A structure that is read has all parts of each residue.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return lockstep::fuzz::read_or_refuse([&] {
    const std::string bytes(lockstep::fuzz::as_text(data, size));
    const auto structure = lockstep::proteins::read_structure(bytes, "a.pdb");
    const size_t count = structure.residue_types.size();
    lockstep::fuzz::require(count > 0 && structure.residue_ids.size() == count);
    lockstep::fuzz::require(structure.backbone.size() == 12 * count &&
                            structure.chi1.size() == count);
  });
}
