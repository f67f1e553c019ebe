#include "lockstep/models/atlas/language.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/files.h"
#include "lockstep/checkpoint/weight_files.h"
#include "lockstep/error.h"
#include "lockstep/formats/sha256.h"
#include "lockstep/models/atlas/hub.h"
#include "lockstep/nn/weights.h"
#include "lockstep/text/bpe_tokenizer.h"
#include "lockstep/text/byte_tokenizer.h"

namespace lockstep::atlas {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTinyLlama = "llama_tiny";
constexpr uint64_t kTinyLlamaSeed = 20'240'418;
constexpr const char* kPrefix = "model.";

// Published files hold the model with or without its head.
checkpoint::FillConfig fill_config(const checkpoint::WeightFiles& files,
                                   const LanguageConfig& config) {
  checkpoint::FillConfig fill{.device = config.device,
                              .dtype = config.precision};
  fill.ignored_prefixes = {"lm_head."};
  const auto names = files.names();
  const bool has_prefix = std::ranges::any_of(
      names, [](const std::string& name) { return name.starts_with(kPrefix); });
  if (has_prefix) {
    fill.name_in_file = [](const std::string& name) {
      return std::optional(kPrefix + name);
    };
  }
  return fill;
}

// Early files contain a table that is computed from the config.
void ignore_tables(checkpoint::FillConfig& fill,
                   const checkpoint::WeightFiles& files) {
  for (const std::string& name : files.names()) {
    if (name.ends_with(".rotary_emb.inv_freq")) {
      fill.ignored_prefixes.push_back(name);
    }
  }
}

void check_file(const fs::path& folder, const char* name,
                const LanguageConfig& config) {
  if (fs::is_regular_file(folder / name)) return;
  throw ConfigError(fmt::format(
      "{}: '{}' holds no {}; it must be a folder of a LLaMA model with "
      "config.json, tokenizer.json and weights",
      config.setting, folder.string(), name));
}

}  // namespace

LanguageEncoder::LanguageEncoder(const LanguageConfig& config,
                                 const base::Environment& environment)
    : config_(config) {
  if (config.model == kTinyLlama) {
    open_tiny();
  } else {
    open_folder(environment);
  }
  const text::TextFrame frame = tokenizer_->frame();
  const auto around =
      static_cast<int64_t>(frame.before.size() + frame.after.size());
  if (config.max_tokens <= around) {
    throw ConfigError(fmt::format(
        "{}: a text of at most {} tokens has no room; {} stand around it",
        config.setting, config.max_tokens, around));
  }
  if (tokenizer_->vocab_size() > model_->config().vocab_size) {
    throw ConfigError(fmt::format(
        "{}: the tokenizer of '{}' has {} tokens, its model {}; they are not "
        "of one model",
        config.setting, config.model, tokenizer_->vocab_size(),
        model_->config().vocab_size));
  }
  model_->eval();
  for (const at::Tensor& parameter : model_->parameters()) {
    parameter.set_requires_grad(false);
  }
}

LanguageEncoder::~LanguageEncoder() = default;

void LanguageEncoder::open_tiny() {
  model_ = std::make_shared<llama::Llama>(llama::llama_preset(kTinyLlama));
  tokenizer_ = std::make_shared<text::ByteTokenizer>();
  tokenizer_files_ = "bytes";
}

void LanguageEncoder::open_folder(const base::Environment& environment) {
  const fs::path folder =
      find_model(config_.model, config_.setting, environment);
  check_file(folder, "config.json", config_);
  check_file(folder, "tokenizer.json", config_);
  model_ = std::make_shared<llama::Llama>(
      llama::read_llama_config(folder / "config.json"));
  tokenizer_ = text::open_tokenizer(folder);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    tokenizer_files_ += base::try_read_file(folder / name).value_or("") + "\n";
  }
  files_ = std::make_unique<checkpoint::WeightFiles>(folder);
}

std::vector<int64_t> LanguageEncoder::tokenize(
    std::string_view sentence) const {
  const text::TextFrame frame = tokenizer_->frame();
  std::vector<int64_t> text = tokenizer_->encode(sentence);
  const size_t room = static_cast<size_t>(config_.max_tokens) -
                      frame.before.size() - frame.after.size();
  text.resize(std::min(text.size(), room));
  text.insert(text.begin(), frame.before.begin(), frame.before.end());
  text.insert(text.end(), frame.after.begin(), frame.after.end());
  return text;
}

TokenBatch LanguageEncoder::batch(
    std::span<const std::vector<int64_t>> sentences) const {
  size_t longest = 1;
  for (const auto& sentence : sentences) {
    longest = std::max(longest, sentence.size());
  }
  const auto count = std::ssize(sentences);
  const at::Tensor ids =
      at::full({count, static_cast<int64_t>(longest)}, padding(), at::kLong);
  const at::Tensor mask = at::zeros(ids.sizes(), at::kBool);
  for (int64_t i = 0; i < count; ++i) {
    const auto& sentence = sentences[static_cast<size_t>(i)];
    const auto size = std::ssize(sentence);
    ids[i].narrow(0, 0, size).copy_(at::tensor(sentence, at::kLong));
    mask[i].narrow(0, 0, size).fill_(true);
  }
  return {.ids = ids.to(config_.device), .mask = mask.to(config_.device)};
}

at::Tensor LanguageEncoder::encode(const at::Tensor& ids,
                                   const at::Tensor& mask) {
  return model().forward(ids, mask);
}

llama::Llama& LanguageEncoder::model() {
  if (is_loaded_) return *model_;
  // Weights outlive this pass, which may run in inference mode.
  const c10::InferenceMode with_gradients(false);
  if (files_ == nullptr) {
    nn::materialize(*model_,
                    at::TensorOptions(config_.device)
                        .dtype(config_.precision.value_or(at::kFloat)));
    nn::fill_randomly(*model_, kTinyLlamaSeed);
  } else {
    checkpoint::FillConfig fill = fill_config(*files_, config_);
    ignore_tables(fill, *files_);
    checkpoint::fill_module(*model_, *files_, fill);
  }
  is_loaded_ = true;
  return *model_;
}

const std::shared_ptr<llama::Llama>& LanguageEncoder::shared_model() {
  model();
  return model_;
}

std::string LanguageEncoder::hash() const {
  const std::string weights = files_ == nullptr
                                  ? fmt::format("random {}", kTinyLlamaSeed)
                                  : files_->content_hash(config_.notes);
  return formats::sha256_of(fmt::format(
      "{}\n{}\n{}\n{}\n{}\n", llama::describe(model_->config()), weights,
      formats::sha256_of(tokenizer_files_),
      config_.precision ? c10::toString(*config_.precision) : "as in the file",
      config_.max_tokens));
}

}  // namespace lockstep::atlas
