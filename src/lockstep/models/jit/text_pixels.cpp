#include "lockstep/models/jit/text_pixels.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"

namespace lockstep::jit {
namespace {

constexpr int64_t kWhite = 0xffffff;

}  // namespace

TextPixels::TextPixels(std::shared_ptr<const text::Tokenizer> tokenizer,
                       const TextPixelsConfig& config)
    : tokenizer_(std::move(tokenizer)),
      side_(config.image_size),
      limit_(config.max_tokens.value_or(side_ * side_)) {
  if (limit_ < 1 || limit_ > side_ * side_) {
    throw ConfigError(fmt::format(
        "--max_tokens {}: an image of --img_size {} holds 1 to {} tokens",
        limit_, side_, side_ * side_));
  }
}

std::vector<int64_t> TextPixels::encode(std::string_view text) const {
  std::vector<int64_t> ids = tokenizer_->encode(text);
  const auto limit = static_cast<size_t>(limit_);
  ids.resize(std::min(ids.size() + 1, limit));
  ids.back() = tokenizer_->eos();
  return ids;
}

TextImage TextPixels::draw(std::span<const int64_t> ids) const {
  const auto count = static_cast<int64_t>(ids.size());
  if (count > limit_) {
    throw ConfigError(fmt::format("{} tokens do not fit: there is room for {}",
                                  count, limit_));
  }
  TextImage image{.pixels = at::empty({3, side_, side_}, at::kByte),
                  .mask = at::zeros({side_, side_}, at::kByte)};
  auto* blue = image.pixels.mutable_data_ptr<uint8_t>();
  const int64_t plane = side_ * side_;
  const int64_t empty = tokenizer_->pad().value_or(kWhite);
  for (int64_t i = 0; i < plane; ++i) {
    const int64_t id = i < count ? ids[static_cast<size_t>(i)] : empty;
    blue[i] = static_cast<uint8_t>(id >> 16);
    blue[plane + i] = static_cast<uint8_t>(id >> 8);
    blue[2 * plane + i] = static_cast<uint8_t>(id);
  }
  std::fill_n(image.mask.mutable_data_ptr<uint8_t>(), count, uint8_t{1});
  return image;
}

std::vector<int64_t> TextPixels::ids_of(const at::Tensor& pixels) const {
  const at::Tensor flat = pixels.contiguous();
  const auto* blue = flat.const_data_ptr<uint8_t>();
  const int64_t plane = side_ * side_;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < limit_; ++i) {
    const int64_t id = int64_t{blue[i]} << 16 | int64_t{blue[plane + i]} << 8 |
                       int64_t{blue[2 * plane + i]};
    // Checked first: these two may be beyond the vocabulary.
    if (id == tokenizer_->eos()) break;
    if (id == tokenizer_->pad()) continue;
    if (id < tokenizer_->vocab_size()) ids.push_back(id);
  }
  return ids;
}

}  // namespace lockstep::jit
