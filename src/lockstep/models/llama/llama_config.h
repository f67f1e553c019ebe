// Sizes and constants of LLaMA models.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::llama {

// Longer contexts by lower rope frequencies, as in LLaMA 3.1: pairs that rotate
// less than low_factor times within the old context rotate `factor` times
// slower, those that rotate more than high_factor times stay, those between are
// interpolated.
struct LlamaRopeScaling {
  double factor = 8;
  double low_factor = 1;
  double high_factor = 4;
  int64_t old_context = 8192;
};

struct LlamaConfig {
  int64_t vocab_size = 128'256;
  int64_t hidden_size = 4096;
  int64_t mlp_size = 14'336;
  int64_t num_layers = 32;
  int64_t num_heads = 32;
  int64_t num_kv_heads = 8;  // Divides num_heads.
  int64_t head_size = 128;   // Even.
  double norm_eps = 1e-5;
  double rope_theta = 500'000;
  std::optional<LlamaRopeScaling> rope_scaling = {};
};

// "llama3_8b", or "llama_tiny" for tests and trainings without files (tokens
// are bytes). Throws ConfigError for other names.
LlamaConfig llama_preset(const std::string& name);

// config.json of Hugging Face, as published and as transformers 5 writes it.
// Throws IoError, and FormatError with the path for a damaged file or an
// unsupported model.
LlamaConfig read_llama_config(const std::filesystem::path& path);

// The same from its text; errors do not name a path.
LlamaConfig parse_llama_config(std::string_view json);

// Everything that the result depends on, in one line.
std::string describe(const LlamaConfig& config);

}  // namespace lockstep::llama
