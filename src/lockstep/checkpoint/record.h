// Torch tensors to records of files, and back.
#pragma once

#include "lockstep/checkpoint/tree.h"
#include "lockstep/formats/value.h"

namespace lockstep {

// The records point to the tensors' memory and keep it alive. All tensors must
// be strided and on the CPU, as host_copy() gives them. Throws ConfigError for
// an element type that files do not know.
Value to_value(const Tree& tree);

// Every storage is copied once, so that the tensors are independent of the file
// and share memory among themselves as before.
Tree to_tree(const Value& value);

at::ScalarType to_scalar_type(DType dtype);

// A tensor over the record's own memory, which it keeps alive and which nobody
// may write to; a copy where elements lie at addresses that their type does not
// allow.
at::Tensor view_of(const TensorRecord& record);

}  // namespace lockstep
