#include "lockstep/models/deeplab/lorm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/tensor/autocast.h"

namespace lockstep::deeplab {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Foreground pixels: `pixels` [R] are positions within each image, image by
// image; `counts` are their numbers per image.
struct Foreground final : torch::CustomClassHolder {
  Tensor pixels;
  std::vector<int64_t> counts;
  int64_t block_entries = 0;
};

// Rows divided by their length, and the lengths.
struct UnitRows {
  Tensor rows;
  Tensor lengths;

  explicit UnitRows(const Tensor& given) {
    const auto type = at::promoteTypes(given.scalar_type(), at::kFloat);
    lengths = at::linalg_vector_norm(given, 2, at::IntArrayRef{-1},
                                     /*keepdim=*/true, type)
                  .clamp_min_(1e-12);
    rows = (given / lengths).to(given.scalar_type());
  }

  // The gradient with respect to the rows, given that of the unit rows.
  Tensor backward(const Tensor& slope) const {
    const Tensor along = (slope * rows).sum(-1, /*keepdim=*/true);
    return (slope - rows * along).div_(lengths);
  }
};

// One image of the batch: x, key [P, C]; query [rows, C].
struct ImageRows {
  Tensor x;
  Tensor values;  // x in the type of the products
  UnitRows keys;
  Tensor query;
  Tensor pixels;
  int64_t block_rows = 1;

  ImageRows(const variable_list& saved, const Foreground& front, int64_t b)
      : x(saved[0][b]),
        values(x.to(saved[2].scalar_type())),
        keys(saved[2][b]) {
    int64_t begin = 0;
    for (int64_t i = 0; i < b; ++i)
      begin += front.counts[static_cast<size_t>(i)];
    const int64_t count = front.counts[static_cast<size_t>(b)];
    query = saved[1].narrow(0, begin, count);
    pixels = front.pixels.narrow(0, begin, count);
    block_rows = std::max<int64_t>(1, front.block_entries / x.size(0));
  }
};

// A block of rows of the attention of one image.
struct Block {
  UnitRows query;
  Tensor pixels;
  Tensor attention;  // [rows, P]
  Tensor explained;  // attention * x, [rows, C]
  Tensor residual;   // x - gamma * explained of these pixels
  int64_t begin;

  Block(const ImageRows& of, const Tensor& gamma, int64_t first)
      : query(of.query.slice(0, first, first + of.block_rows)),
        pixels(of.pixels.slice(0, first, first + of.block_rows)),
        begin(first) {
    const auto type = at::promoteTypes(of.x.scalar_type(), at::kFloat);
    // Cosines are at most 1, and the kernel sums exponentials in float32.
    attention = at::softmax(at::mm(query.rows, of.keys.rows.t()), -1);
    explained = at::mm(attention, of.values).to(type);
    residual = of.x.index_select(0, pixels).to(type) - gamma * explained;
  }
};

template <typename Visit>
void for_each_block(const ImageRows& image, const Tensor& gamma, Visit visit) {
  for (int64_t row = 0; row < image.query.size(0); row += image.block_rows) {
    visit(Block(image, gamma, row));
  }
}

// Gradients of one image, not yet scaled by the gradient of the loss.
struct ImageGradients {
  Tensor x;      // [P, C]
  Tensor query;  // [rows, C]
  Tensor key;    // [P, C]
  Tensor gamma;  // [1]
};

// r = x - gamma N, N = A x, and the sum of r^2: dN = -2 gamma r.
// dN is scaled by C^-1/2 and dS by P so that half precision holds them.
ImageGradients gradients_of(const ImageRows& of, const Tensor& gamma) {
  const auto type = at::promoteTypes(of.x.scalar_type(), at::kFloat);
  const auto small = of.values.scalar_type();
  const auto pixels = static_cast<double>(of.x.size(0));
  const double down = 1 / std::sqrt(static_cast<double>(of.x.size(1)));
  Tensor residual = of.x.to(type, /*non_blocking=*/false, /*copy=*/true);
  Tensor through = at::zeros_like(residual);    // dx by A x, times down
  Tensor unit_keys = at::zeros_like(residual);  // times down and pixels
  std::vector<Tensor> queries;
  Tensor dgamma = at::zeros_like(gamma, type);
  for_each_block(of, gamma, [&](Block block) {
    residual.index_copy_(0, block.pixels, block.residual);
    dgamma.sub_((block.residual * block.explained).sum(), 2);
    const Tensor exact = block.residual * (-2 * down * gamma);
    const Tensor slope = exact.to(small);
    const Tensor mean =
        (exact * block.explained).sum(-1, /*keepdim=*/true).to(small);
    through.add_(at::mm(block.attention.t(), slope));
    Tensor scores = at::mm(slope, of.values.t());
    scores.sub_(mean).mul_(block.attention.mul_(pixels));
    unit_keys.add_(at::mm(scores.t(), block.query.rows));
    queries.push_back(
        block.query.backward(at::mm(scores, of.keys.rows).to(type)));
  });
  const double up = 1 / down;
  ImageGradients made;
  made.x = residual.mul_(2).add_(through, up);
  made.key = of.keys.backward(unit_keys).mul_(up / pixels);
  if (!queries.empty()) made.query = at::cat(queries).mul_(up / pixels);
  made.gamma = dgamma;
  return made;
}

// x [B, P, C], query [R, C], key [B, P, C], gamma [1] -> the sum of squares and
// the number of those that are not 0.
struct Residual : torch::autograd::Function<Residual> {
  static variable_list forward(AutogradContext* context, const Tensor& x,
                               const Tensor& query, const Tensor& key,
                               const Tensor& gamma,
                               const c10::intrusive_ptr<Foreground>& front) {
    const tensor::Autocast off(x.device().type(), at::kFloat);
    const auto type = at::promoteTypes(x.scalar_type(), at::kFloat);
    Tensor sum = at::zeros({}, x.options().dtype(type));
    Tensor count = at::zeros({}, x.options().dtype(at::kLong));
    for (int64_t b = 0; b < x.size(0); ++b) {
      const ImageRows image({x, query, key}, *front, b);
      Tensor residual = image.x.to(type, false, /*copy=*/true);
      for_each_block(image, gamma, [&](const Block& block) {
        residual.index_copy_(0, block.pixels, block.residual);
      });
      residual.square_();
      sum.add_(residual.sum());
      count.add_(at::count_nonzero(residual));
    }
    context->save_for_backward({x, query, key, gamma});
    context->saved_data["front"] = c10::IValue::make_capsule(front);
    count = count.to(at::kDouble);
    context->mark_non_differentiable({count});
    return {sum, count};
  }

  static variable_list backward(AutogradContext* context,
                                variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor& factor = gradients[0];
    const auto capsule = context->saved_data["front"].toCapsule();
    const auto& front = static_cast<const Foreground&>(*capsule);
    Tensor dx = at::empty_like(saved[0]);
    Tensor dquery = at::empty_like(saved[1]);
    Tensor dkey = at::empty_like(saved[2]);
    Tensor dgamma = at::zeros_like(saved[3], factor.scalar_type());
    int64_t begin = 0;
    for (int64_t b = 0; b < dx.size(0); ++b) {
      const ImageRows image(saved, front, b);
      const ImageGradients own = gradients_of(image, saved[3]);
      const int64_t count = image.query.size(0);
      dx[b].copy_(own.x * factor);
      dkey[b].copy_(own.key * factor);
      if (count > 0) dquery.narrow(0, begin, count).copy_(own.query * factor);
      dgamma.add_(own.gamma * factor);
      begin += count;
    }
    return {dx, dquery, dkey, dgamma.to(saved[3].scalar_type()), Tensor()};
  }
};

// bool [B, P]
Tensor foreground_mask(const Tensor& classes, const Tensor& features) {
  const Tensor ids = classes.masked_fill(classes.eq(data::kNoLabel), 0)
                         .to(at::kFloat)
                         .unsqueeze(1);
  return resize_maps(ids, features.size(2), features.size(3)).gt(0).flatten(1);
}

torch::nn::Conv2d projection(int64_t width) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(width, width, 1));
}

// [B, C, h, w] -> [B, P, C] without a copy.
Tensor pixel_rows(const Tensor& maps) {
  return maps.flatten(2).transpose(1, 2);
}

}  // namespace

double lorm_products(int64_t width, double pixels) {
  const auto channels = static_cast<double>(width);
  return 2 * pixels * channels * (channels + pixels);
}

Lorm::Lorm(const LormConfig& config)
    : config_(config), gamma_(register_parameter("gamma", at::ones({1}))) {
  query_conv_ = register_module("query_conv", projection(config.width));
  key_conv_ = register_module("key_conv", projection(config.width));
}

LossSum Lorm::forward(const Tensor& features, const Tensor& classes) {
  const Tensor mask = foreground_mask(classes, features);
  const Tensor positions = mask.view(-1).nonzero().squeeze(1);
  const Tensor counts = mask.sum(1).cpu();
  auto front = c10::make_intrusive<Foreground>();
  front->pixels = positions.remainder(mask.size(1));
  front->counts.assign(counts.data_ptr<int64_t>(),
                       counts.data_ptr<int64_t>() + counts.numel());
  front->block_entries = config_.block_entries;
  const Tensor x = pixel_rows(features);
  // Only foreground pixels have queries.
  const Tensor asking =
      x.reshape({-1, config_.width}).index_select(0, positions);
  const Tensor query =
      at::linear(asking, query_conv_->weight.flatten(1), query_conv_->bias);
  const Tensor key = pixel_rows(key_conv_->forward(features));
  const auto terms = Residual::apply(x, query, key, gamma_, front);
  return {.sum = terms[0], .normaliser = terms[1]};
}

}  // namespace lockstep::deeplab
