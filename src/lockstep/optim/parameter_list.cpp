#include "lockstep/optim/parameter_list.h"

namespace lockstep::optim {

std::vector<at::Tensor> parameters_of(std::span<const ParameterGroup> groups) {
  std::vector<at::Tensor> parameters;
  for (const ParameterGroup& group : groups) {
    parameters.insert(parameters.end(), group.parameters.begin(),
                      group.parameters.end());
  }
  return parameters;
}

}  // namespace lockstep::optim
