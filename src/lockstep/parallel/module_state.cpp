#include "lockstep/parallel/module_state.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>

#include <sstream>
#include <unordered_set>

#include "lockstep/base/strings.h"
#include "lockstep/error.h"

namespace lockstep::parallel {
namespace {

using Seen = std::unordered_set<const at::TensorImpl*>;

bool is_new(const at::Tensor& tensor, Seen& seen) {
  return seen.insert(tensor.unsafeGetTensorImpl()).second;
}

bool has_sparse_gradient(const torch::nn::Module& module) {
  if (const auto* embedding = module.as<torch::nn::Embedding>()) {
    return embedding->options.sparse();
  }
  if (const auto* bag = module.as<torch::nn::EmbeddingBag>()) {
    return bag->options.sparse();
  }
  return false;
}

std::string full_name(const std::string& module, const std::string& own) {
  return module.empty() ? own : module + "." + own;
}

template <typename NamedTensors>
std::vector<at::Tensor> collect(const NamedTensors& named,
                                const NameSet& ignored) {
  std::vector<at::Tensor> tensors;
  Seen seen;
  for (const auto& item : named) {
    if (!item.value().defined() || ignored.contains(item.key())) continue;
    if (is_new(item.value(), seen)) tensors.push_back(item.value().detach());
  }
  return tensors;
}

}  // namespace

TrainedParameters trained_parameters(const torch::nn::Module& module,
                                     const NameSet& ignored) {
  TrainedParameters trained;
  Seen seen;
  for (const auto& part : module.named_modules()) {
    for (const auto& item : part.value()->named_parameters(/*recurse=*/false)) {
      const at::Tensor& tensor = item.value();
      const std::string name = full_name(part.key(), item.key());
      if (!tensor.requires_grad() || ignored.contains(name)) continue;
      if (!is_new(tensor, seen)) continue;
      trained.tensors.push_back(tensor);
      trained.names.push_back(name);
      trained.has_sparse_gradient.push_back(has_sparse_gradient(*part.value()));
    }
  }
  return trained;
}

std::vector<at::Tensor> all_parameters(const torch::nn::Module& module,
                                       const NameSet& ignored) {
  return collect(module.named_parameters(), ignored);
}

std::vector<at::Tensor> all_buffers(const torch::nn::Module& module,
                                    const NameSet& ignored) {
  return collect(module.named_buffers(), ignored);
}

std::string describe(const torch::nn::Module& module, const NameSet& ignored) {
  std::ostringstream text;
  const auto add = [&](const char* kind, const auto& named) {
    for (const auto& item : named) {
      const at::Tensor& tensor = item.value();
      if (!tensor.defined() || ignored.contains(item.key())) continue;
      text << kind << " " << item.key() << " " << tensor.sizes() << " "
           << tensor.dtype().name()
           << (tensor.requires_grad() ? " trained" : "") << "\n";
    }
  };
  add("parameter", module.named_parameters());
  add("buffer", module.named_buffers());
  return text.str();
}

void check_names(const torch::nn::Module& module, const NameSet& names) {
  std::vector<std::string> known;
  for (const auto& item : module.named_parameters())
    known.push_back(item.key());
  for (const auto& item : module.named_buffers()) known.push_back(item.key());
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto near = base::nearest(name, known);
    throw ConfigError("the module has no parameter or buffer '" + name +
                      "' to ignore" +
                      (near ? "; did you mean '" + *near + "'?" : ""));
  }
}

}  // namespace lockstep::parallel
