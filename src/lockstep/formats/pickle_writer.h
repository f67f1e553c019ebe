// Writes the pickle of a torch zip file, protocol 2.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/formats/value.h"

namespace lockstep::formats {

struct Pickle {
  std::string bytes;
  // What the keys "0", "1", ... in the pickle stand for.
  std::vector<std::span<const std::byte>> storages = {};
};

// Uses only what torch.load(weights_only=True) accepts. Tensors that share a
// storage (and a type) share it in the file. Throws FormatError for a value
// that such a file cannot hold: an Opaque, or a string that is not UTF-8. The
// value must outlive the result, which points to its tensors' bytes.
Pickle write_pickle(const Value& value);

}  // namespace lockstep::formats
