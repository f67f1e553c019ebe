#include "lockstep/fid/inception_weights.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/shape_text.h"
#include "lockstep/base/strings.h"
#include "lockstep/checkpoint.h"
#include "lockstep/error.h"
#include "lockstep/formats/crc32.h"
#include "lockstep/formats/tensor_record.h"

namespace lockstep::fid {
namespace {

constexpr double kBatchNormEpsilon = 1e-3;
constexpr int64_t kNumClasses = 1008;
constexpr int64_t kWidth = 2048;
constexpr size_t kMaxNamed = 5;

// Adds the layers of one block; names begin with the block's.
class BlockLayers {
 public:
  BlockLayers(std::vector<InceptionLayer>& layers, std::string block)
      : layers_(layers), block_(std::move(block)) {}

  void add(const std::string& name, int64_t in, int64_t out,
           std::array<int64_t, 2> kernel = {1, 1}) {
    const std::array<int64_t, 2> padding = {kernel[0] / 2, kernel[1] / 2};
    layers_.push_back({.name = block_ + name,
                       .in = in,
                       .out = out,
                       .kernel = kernel,
                       .padding = padding});
  }
  // 3 x 3, not padded.
  void add_valid(const std::string& name, int64_t in, int64_t out,
                 int64_t stride) {
    layers_.push_back({.name = block_ + name,
                       .in = in,
                       .out = out,
                       .kernel = {3, 3},
                       .stride = stride});
  }

 private:
  std::vector<InceptionLayer>& layers_;
  std::string block_;
};

void add_stem(BlockLayers block) {
  block.add_valid("Conv2d_1a_3x3", 3, 32, 2);
  block.add_valid("Conv2d_2a_3x3", 32, 32, 1);
  block.add("Conv2d_2b_3x3", 32, 64, {3, 3});
  block.add("Conv2d_3b_1x1", 64, 80);
  block.add_valid("Conv2d_4a_3x3", 80, 192, 1);
}

void add_block_a(BlockLayers block, int64_t in, int64_t pooled) {
  block.add("branch1x1", in, 64);
  block.add("branch5x5_1", in, 48);
  block.add("branch5x5_2", 48, 64, {5, 5});
  block.add("branch3x3dbl_1", in, 64);
  block.add("branch3x3dbl_2", 64, 96, {3, 3});
  block.add("branch3x3dbl_3", 96, 96, {3, 3});
  block.add("branch_pool", in, pooled);
}

void add_block_b(BlockLayers block) {
  block.add_valid("branch3x3", 288, 384, 2);
  block.add("branch3x3dbl_1", 288, 64);
  block.add("branch3x3dbl_2", 64, 96, {3, 3});
  block.add_valid("branch3x3dbl_3", 96, 96, 2);
}

void add_block_c(BlockLayers block, int64_t inner) {
  block.add("branch1x1", 768, 192);
  block.add("branch7x7_1", 768, inner);
  block.add("branch7x7_2", inner, inner, {1, 7});
  block.add("branch7x7_3", inner, 192, {7, 1});
  block.add("branch7x7dbl_1", 768, inner);
  block.add("branch7x7dbl_2", inner, inner, {7, 1});
  block.add("branch7x7dbl_3", inner, inner, {1, 7});
  block.add("branch7x7dbl_4", inner, inner, {7, 1});
  block.add("branch7x7dbl_5", inner, 192, {1, 7});
  block.add("branch_pool", 768, 192);
}

void add_block_d(BlockLayers block) {
  block.add("branch3x3_1", 768, 192);
  block.add_valid("branch3x3_2", 192, 320, 2);
  block.add("branch7x7x3_1", 768, 192);
  block.add("branch7x7x3_2", 192, 192, {1, 7});
  block.add("branch7x7x3_3", 192, 192, {7, 1});
  block.add_valid("branch7x7x3_4", 192, 192, 2);
}

void add_block_e(BlockLayers block, int64_t in) {
  block.add("branch1x1", in, 320);
  block.add("branch3x3_1", in, 384);
  block.add("branch3x3_2a", 384, 384, {1, 3});
  block.add("branch3x3_2b", 384, 384, {3, 1});
  block.add("branch3x3dbl_1", in, 448);
  block.add("branch3x3dbl_2", 448, 384, {3, 3});
  block.add("branch3x3dbl_3a", 384, 384, {1, 3});
  block.add("branch3x3dbl_3b", 384, 384, {3, 1});
  block.add("branch_pool", in, 192);
}

// Takes tensors out of a state dict and notes what is wrong with them.
class StateDict {
 public:
  explicit StateDict(const Tree& file) {
    const auto* dict = find_state_dict(file).get_if<Tree::Dict>();
    for (const auto& entry : dict != nullptr ? *dict : Tree::Dict{}) {
      const auto* name = entry.key.get_if<std::string>();
      const auto* tensor = entry.value.get_if<at::Tensor>();
      if (name == nullptr || tensor == nullptr) continue;
      if (!name->ends_with(".num_batches_tracked")) left_[*name] = *tensor;
    }
  }

  // In double; of the expected shape, whatever the file holds.
  at::Tensor take(const std::string& name, const std::vector<int64_t>& shape) {
    const auto found = left_.find(name);
    if (found == left_.end()) {
      problems_.push_back("no " + name);
      return at::zeros(shape, at::kDouble);
    }
    const at::Tensor tensor = found->second;
    left_.erase(found);
    if (tensor.sizes() != at::IntArrayRef(shape) ||
        !tensor.is_floating_point()) {
      problems_.push_back(fmt::format("{} is {} instead of {}", name,
                                      base::shape_text(tensor.sizes().vec()),
                                      base::shape_text(shape)));
      return at::zeros(shape, at::kDouble);
    }
    return tensor.to(at::kDouble).contiguous();
  }

  void take_if_there(const std::string& name,
                     const std::vector<int64_t>& shape) {
    if (left_.contains(name)) take(name, shape);
  }

  // All that is wrong, with what nobody took.
  std::vector<std::string> problems() const {
    std::vector<std::string> all = problems_;
    for (const auto& [name, tensor] : left_) all.push_back("unknown " + name);
    return all;
  }

 private:
  std::map<std::string, at::Tensor> left_;
  std::vector<std::string> problems_;
};

uint32_t checksum_of(const std::vector<at::Tensor>& tensors) {
  std::vector<uint32_t> sums;
  for (const at::Tensor& tensor : tensors) {
    sums.push_back(formats::crc32_of(
        {static_cast<const std::byte*>(tensor.const_data_ptr()),
         tensor.nbytes()}));
  }
  return formats::crc32_of(std::as_bytes(std::span(sums)));
}

// y = (conv(x) - mean) / sqrt(variance + epsilon) * weight + bias
InceptionConv take_conv(StateDict& state, const InceptionLayer& layer) {
  const std::vector<int64_t> channels = {layer.out};
  const at::Tensor kernel =
      state.take(layer.name + ".conv.weight",
                 {layer.out, layer.in, layer.kernel[0], layer.kernel[1]});
  const std::string norm = layer.name + ".bn.";
  const at::Tensor variance = state.take(norm + "running_var", channels);
  const at::Tensor scale = state.take(norm + "weight", channels) /
                           (variance + kBatchNormEpsilon).sqrt();
  const at::Tensor shift = state.take(norm + "bias", channels) -
                           state.take(norm + "running_mean", channels) * scale;
  return {.layer = layer,
          .weight = (kernel * scale.view({-1, 1, 1, 1})).to(at::kFloat),
          .bias = shift.to(at::kFloat)};
}

}  // namespace

std::vector<InceptionLayer> inception_layers() {
  std::vector<InceptionLayer> layers;
  add_stem({layers, ""});
  add_block_a({layers, "Mixed_5b."}, 192, 32);
  add_block_a({layers, "Mixed_5c."}, 256, 64);
  add_block_a({layers, "Mixed_5d."}, 288, 64);
  add_block_b({layers, "Mixed_6a."});
  add_block_c({layers, "Mixed_6b."}, 128);
  add_block_c({layers, "Mixed_6c."}, 160);
  add_block_c({layers, "Mixed_6d."}, 160);
  add_block_c({layers, "Mixed_6e."}, 192);
  add_block_d({layers, "Mixed_7a."});
  add_block_e({layers, "Mixed_7b."}, 1280);
  add_block_e({layers, "Mixed_7c."}, 2048);
  return layers;
}

InceptionWeights read_inception_weights(const std::filesystem::path& path) {
  const Tree file = load_checkpoint(path);
  StateDict state(file);
  InceptionWeights weights;
  std::vector<at::Tensor> tensors;
  for (const InceptionLayer& layer : inception_layers()) {
    InceptionConv conv = take_conv(state, layer);
    tensors.insert(tensors.end(), {conv.weight, conv.bias});
    weights.convs.emplace(layer.name, std::move(conv));
  }
  state.take_if_there("fc.weight", {kNumClasses, kWidth});
  state.take_if_there("fc.bias", {kNumClasses});
  std::vector<std::string> problems = state.problems();
  if (!problems.empty()) {
    const size_t more = problems.size() - std::min(problems.size(), kMaxNamed);
    problems.resize(problems.size() - more);
    throw ConfigError(fmt::format(
        "'{}' does not hold the weights of FID's Inception ({}{}): expected "
        "pt_inception-2015-12-05-6726825d.pth of pytorch-fid",
        path.string(), base::join(problems, ", "),
        more == 0 ? "" : fmt::format(" and {} more", more)));
  }
  weights.checksum = checksum_of(tensors);
  return weights;
}

}  // namespace lockstep::fid
