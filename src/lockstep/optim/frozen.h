// Modules that are used but not trained.
#pragma once

namespace torch::nn {
class Module;
}

namespace lockstep::optim {

// No parameter requires a gradient, and the module is in eval mode. Do it
// before DistributedDataParallel and optimizers take the parameters.
void freeze(torch::nn::Module& module);

// Train mode for all submodules except those with only frozen parameters: these
// (and what they hold) stay in eval mode, so that dropout is off and running
// statistics do not change. A module without parameters follows the one that
// holds it.
void train_except_frozen(torch::nn::Module& module);

}  // namespace lockstep::optim
