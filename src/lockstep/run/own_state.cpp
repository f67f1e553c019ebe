#include "lockstep/run/own_state.h"

#include <ATen/ops/zeros_like.h>
#include <torch/nn/module.h>

#include <string>

#include "lockstep/checkpoint/packed.h"
#include "lockstep/run/state_tree.h"

namespace lockstep::run {
namespace {

constexpr const char* kSums = "sums";
constexpr const char* kSumsIfSkipped = "sums_if_skipped";
constexpr const char* kParts = "parts";

// The counts of skipped steps, behind the sums, are equal on all ranks.
constexpr int64_t kCounts = 2;

// Rank 0 holds them for all.
at::Tensor redistributed(const TreeView& all, const char* key, int rank) {
  const at::Tensor first = all.at(0).at(key).as_tensor();
  at::Tensor result = first.clone();
  at::Tensor sums = result.slice(0, 0, result.size(0) - kCounts);
  sums.zero_();
  if (rank != 0) return result;
  for (size_t i = 0; i < all.as_list().size(); ++i) {
    const at::Tensor part = all.at(static_cast<int64_t>(i)).at(key).as_tensor();
    sums.add_(part.slice(0, 0, sums.size(0)));
  }
  return result;
}

}  // namespace

Tree own_state(const at::Tensor& sums, const at::Tensor& if_skipped,
               const std::vector<std::string>& parts) {
  Tree own = Tree::dict();
  own["generator"] = cpu_generator_state();
  own[kSums] = sums;
  own[kSumsIfSkipped] = if_skipped;
  Tree& names = own[kParts] = Tree::list();
  for (const std::string& part : parts) names.push_back(part);
  return own;
}

std::vector<std::string> parts_of(const TreeView& own) {
  std::vector<std::string> parts;
  for (const Tree& part : own.at(kParts).as_list()) {
    parts.push_back(TreeView(part).as_string());
  }
  return parts;
}

Tree buffers_tree(const torch::nn::Module& model) {
  Tree tree = Tree::dict();
  for (const auto& item : model.named_buffers()) {
    tree[item.key()] = item.value().detach();
  }
  return tree;
}

Tree gather_own_states(const World& world, const Tree& own) {
  Tree all = Tree::list();
  for (const std::string& bytes : world.gather_texts(checkpoint::pack(own))) {
    all.push_back(checkpoint::unpack(bytes));
  }
  return all;
}

Tree own_state_of(const World& world, const TreeView& all) {
  const auto num_before = std::ssize(all.as_list());
  Tree own = Tree::dict();
  if (world.rank() < num_before) {
    own = all.as_list()[static_cast<size_t>(world.rank())];
  } else {
    own[kParts] = all.at(0).at(kParts).value();
  }
  if (num_before == world.size()) return own;
  for (const char* key : {kSums, kSumsIfSkipped}) {
    own[key] = redistributed(all, key, world.rank());
  }
  return own;
}

}  // namespace lockstep::run
