// The tensors of a module in the order in which Python's
// DistributedDataParallel takes them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lockstep/tensor/tensor.h"

namespace torch::nn {
class Module;
}

namespace lockstep::parallel {

using NameSet = std::set<std::string, std::less<>>;

// The parameters with averaged gradients: those that require a gradient, each
// once.
struct TrainedParameters {
  std::vector<at::Tensor> tensors;
  std::vector<std::string> names;
  std::vector<bool> has_sparse_gradient;  // Embedding layers with sparse(true).
};

// `module` must be held by a shared_ptr.
TrainedParameters trained_parameters(const torch::nn::Module& module,
                                     const NameSet& ignored);

// All parameters (frozen ones too) without those ignored, each once, detached.
std::vector<at::Tensor> all_parameters(const torch::nn::Module& module,
                                       const NameSet& ignored);

// Collected anew at each call: a module may replace its buffers.
std::vector<at::Tensor> all_buffers(const torch::nn::Module& module,
                                    const NameSet& ignored);

// One line per parameter and buffer: name, shape, type, whether it is trained.
// Equal on all ranks of a sound job.
std::string describe(const torch::nn::Module& module, const NameSet& ignored);

// Throws ConfigError for an ignored name that the module does not have, with
// the nearest one.
void check_names(const torch::nn::Module& module, const NameSet& names);

}  // namespace lockstep::parallel
