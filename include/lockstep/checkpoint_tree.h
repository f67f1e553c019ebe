// What a program saves and loads: a tree of values with torch tensors.
//
//   Tree tree;
//   tree["epoch"] = 3;
//   tree["model"] = module_state(*net);
//   save_checkpoint("last.pt", tree);
//
//   const Tree loaded = load_checkpoint("last.pt");
//   loaded.at("epoch").as_int();
//   load_module_state(*net, loaded.at("model"));
//
// A missing or wrong key is a FormatError that names its whole path:
// "checkpoint: 'optimizer.state.0.step' is a string, expected a tensor".
#pragma once

#include "lockstep/formats/value.h"
#include "lockstep/tensor/tensor.h"

namespace lockstep {

using Tree = BasicValue<at::Tensor>;
using TreeView = BasicView<at::Tensor>;

}  // namespace lockstep
