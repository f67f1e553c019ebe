// Sentences as numbers that a LLaMA model makes of them.
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
  // bytes; or a folder with config.json, tokenizer.json and weights; or a name
  // of the hub (hub.h).
  std::string model = "llama_tiny";
  std::string setting = "lang_encoder_name";  // Of messages.
  at::Device device = at::kCPU;
  // Unset: as in the file; float32 for llama_tiny.
  std::optional<at::ScalarType> precision = {};
  int64_t max_tokens = 128;
  // Where the hash of large files is remembered; empty: nowhere.
  std::filesystem::path notes = {};
};

struct TokenBatch {
  at::Tensor ids;   // int64 [B, T], padded on the right
  at::Tensor mask;  // bool [B, T], true where a token is
};

// The tokenizer and the model as one. Its parameters take no gradient and it is
// in eval mode; who trains it changes both by model(). Not safe for use by
// several threads at once, but for tokenize().
class LanguageEncoder {
 public:
  // Reads and checks all but the weights' numbers: those are loaded by what
  // needs them first. Throws ConfigError, FormatError and IoError.
  explicit LanguageEncoder(
      const LanguageConfig& config,
      const base::Environment& environment = base::process_environment());
  ~LanguageEncoder();

  // With what the published tokenizer puts around a text, such as the token
  // that begins it; a longer one is cut to max_tokens.
  std::vector<int64_t> tokenize(std::string_view sentence) const;

  // On the model's device, as long as the longest; padding is the token that
  // ends a text.
  TokenBatch batch(std::span<const std::vector<int64_t>> sentences) const;

  int64_t hidden_size() const { return model_->config().hidden_size; }
  int64_t padding() const { return tokenizer_->eos(); }

  // The last hidden state, [B, T, hidden_size], in the model's precision.
  at::Tensor encode(const at::Tensor& ids, const at::Tensor& mask);

  // With its weights.
  llama::Llama& model();
  const std::shared_ptr<llama::Llama>& shared_model();

  // Changes with all that the hidden states depend on: weights, sizes,
  // tokenizer, precision, longest text.
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
