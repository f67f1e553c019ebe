// Common to tests against an independent Python implementation.
#pragma once

#include <string>

#include "lockstep/checkpoint.h"

namespace torch::nn {
class Module;
}

namespace lockstep::testing {

// Runs python/`script` with a file of the cases and gives what it wrote. Throws
// std::runtime_error with the script's words when it fails.
Tree run_reference(const std::string& script, const Tree& cases);

// Adds noise to all that is trained: what begins as zero or one would hide what
// comes before it.
void shake(torch::nn::Module& model, double amount);

// How far ours may be from theirs, relative to the length of theirs.
struct Closeness {
  std::string what;
  double tolerance = 1e-5;
};
void expect_close(const at::Tensor& ours, const at::Tensor& theirs,
                  const Closeness& closeness);

// Gradients of all trained parameters, by name; there must be no others.
void expect_equal_gradients(const torch::nn::Module& model,
                            const TreeView& theirs, double tolerance);

}  // namespace lockstep::testing
