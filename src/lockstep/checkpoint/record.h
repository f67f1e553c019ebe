// Torch tensors to records of files, and back.
#pragma once

#include "lockstep/checkpoint.h"
#include "lockstep/formats/value.h"

namespace lockstep::checkpoint {

// The records point to the tensors' memory and keep it alive. All tensors must
// be strided and on the CPU, as host_copy() gives them. Throws ConfigError for
// an element type that files do not know.
formats::Value to_value(const Tree& tree);

// Every storage is read once, by several threads, and its checksum compared:
// the tensors are independent of the file and share memory among themselves as
// before, except for conjugated and negated ones, which are separate copies.
// Throws IoError and FormatError.
Tree to_tree(const formats::Value& value);

at::ScalarType to_scalar_type(formats::DType dtype);

// A contiguous copy of one tensor; a checksum is not compared. Throws IoError.
at::Tensor copy_of(const formats::TensorRecord& record);

// As find_state_dict().
const formats::Value& find_value_dict(const formats::Value& file);

}  // namespace lockstep::checkpoint
