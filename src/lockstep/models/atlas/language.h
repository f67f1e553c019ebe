// Features of sentences, by LLaMA.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/environment.h"
#include "lockstep/models/llama/llama.h"
#include "lockstep/tensor/tensor.h"
#include "lockstep/text/tokenizer.h"

namespace lockstep::checkpoint {
class WeightFiles;
}  // namespace lockstep::checkpoint

namespace lockstep::atlas {

struct LanguageConfig {
  // "llama_tiny": a small model of fixed random weights, whose tokens are
  // bytes; or a folder with config.json, tokenizer.json and weights; or a
  // Hugging Face hub name (hub.h).
  std::string model = "llama_tiny";
  std::string setting = "lang_encoder_name";  // Setting to name in errors.
  at::Device device = at::kCPU;
  // Unset: as in the file; float32 for llama_tiny.
  std::optional<at::ScalarType> precision = {};
  int64_t max_tokens = 128;
  // Where hashes of large files are cached; empty: nowhere.
  std::filesystem::path notes = {};
};

struct TokenBatch {
  at::Tensor ids;   // int64 [B, T], padded on the right
  at::Tensor mask;  // bool [B, T], true where a token is
};

// Tokenizer and model. Parameters do not require gradients and the model is in
// eval mode; to train it, change both through model(). Not thread-safe, except
// tokenize().
class LanguageEncoder {
 public:
  // Reads and checks everything except the weights, which are loaded on first
  // use. Throws ConfigError, FormatError and IoError.
  explicit LanguageEncoder(
      const LanguageConfig& config,
      const base::Environment& environment = base::process_environment());
  ~LanguageEncoder();

  // Adds the published tokenizer's special tokens, such as BOS, and truncates
  // to max_tokens.
  std::vector<int64_t> tokenize(std::string_view sentence) const;

  // On the model's device, padded with EOS to the longest.
  TokenBatch batch(std::span<const std::vector<int64_t>> sentences) const;

  int64_t hidden_size() const { return model_->config().hidden_size; }
  int64_t padding() const { return tokenizer_->eos(); }

  // The last hidden state, [B, T, hidden_size], in the model's precision.
  at::Tensor encode(const at::Tensor& ids, const at::Tensor& mask);

  // Loads the weights if needed.
  llama::Llama& model();
  const std::shared_ptr<llama::Llama>& shared_model();

  // Hash of everything the hidden states depend on: weights, sizes, tokenizer,
  // precision, max_tokens.
  std::string hash() const;

 private:
  void open_tiny();
  void open_folder(const base::Environment& environment);

  LanguageConfig config_;
  std::shared_ptr<llama::Llama> model_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::string tokenizer_files_;                     // Their bytes.
  std::unique_ptr<checkpoint::WeightFiles> files_;  // Null for llama_tiny.
  bool is_loaded_ = false;
};

}  // namespace lockstep::atlas
