// Modules that are used but not trained.
#pragma once

namespace torch::nn {
class Module;
}

namespace lockstep {

// No parameter requires a gradient, and the module is in eval mode. Do it
// before DistributedDataParallel and optimizers take the parameters.
void freeze(torch::nn::Module& module);

// Train mode for the tree, except for those modules in it all of whose
// parameters are frozen: they (and what they hold) stay in eval mode, so that
// their dropout is off and their running statistics do not change. A module
// without parameters follows the one that holds it.
void train_except_frozen(torch::nn::Module& module);

}  // namespace lockstep
