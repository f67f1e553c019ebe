#include "lockstep/models/llama/llama_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/files.h"
#include "lockstep/base/utf8.h"
#include "lockstep/error.h"

namespace lockstep::llama {
namespace {

using Json = nlohmann::json;

// Larger values mean a damaged file, and would allocate too much memory.
constexpr int64_t kLargestSize = int64_t{1} << 24;
constexpr int64_t kMostLayers = 10'000;

// Null if the key is missing.
const Json& part(const Json& object, const char* key) {
  static const Json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string text_of(const Json& value) {
  return base::as_utf8(
      value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

int64_t size_of(const Json& object, const char* key,
                std::optional<int64_t> otherwise = {}) {
  const Json& value = part(object, key);
  if (value.is_null() && otherwise) return *otherwise;
  if (!value.is_number_unsigned() || value.get<uint64_t>() == 0 ||
      value.get<uint64_t>() > kLargestSize) {
    throw FormatError(
        fmt::format("\"{}\" is {}, not a size", key, text_of(value)));
  }
  return value.get<int64_t>();
}

double number_of(const Json& object, const char* key,
                 std::optional<double> otherwise = {}) {
  const Json& value = part(object, key);
  if (value.is_null() && otherwise) return *otherwise;
  if (!value.is_number() || !(value.get<double>() > 0)) {
    throw FormatError(
        fmt::format("\"{}\" is {}, not a number above 0", key, text_of(value)));
  }
  return value.get<double>();
}

// Rejects settings that this implementation does not compute.
void check_kind(const Json& file) {
  const auto expect = [&](const char* key, const Json& known,
                          const Json& otherwise) {
    const Json& value = part(file, key);
    if ((value.is_null() ? otherwise : value) == known) return;
    throw FormatError(fmt::format("\"{}\" is {}; supported is {}", key,
                                  text_of(value), text_of(known)));
  };
  expect("model_type", "llama", Json());
  expect("hidden_act", "silu", "silu");
  expect("attention_bias", false, false);
  expect("mlp_bias", false, false);
}

void read_rope(const Json& file, LlamaConfig& config) {
  // transformers 5 keeps all of it in one table.
  const Json& fresh = part(file, "rope_parameters");
  const Json& scaling = fresh.is_null() ? part(file, "rope_scaling") : fresh;
  config.rope_theta =
      number_of(fresh.is_object() ? fresh : file, "rope_theta", 10'000);
  if (scaling.is_null()) return;
  if (!scaling.is_object())
    throw FormatError("its rope scaling is not a table");
  const Json& type = scaling.contains("rope_type") ? part(scaling, "rope_type")
                                                   : part(scaling, "type");
  if (type.is_null() || type == "default") return;
  if (type != "llama3") {
    throw FormatError(fmt::format(
        "its rope scaling is {}; supported is \"llama3\"", text_of(type)));
  }
  config.rope_scaling = LlamaRopeScaling{
      .factor = number_of(scaling, "factor"),
      .low_factor = number_of(scaling, "low_freq_factor"),
      .high_factor = number_of(scaling, "high_freq_factor"),
      .old_context = size_of(scaling, "original_max_position_embeddings")};
  if (config.rope_scaling->high_factor <= config.rope_scaling->low_factor) {
    throw FormatError("\"high_freq_factor\" is not above \"low_freq_factor\"");
  }
}

LlamaConfig parse(const Json& file) {
  if (!file.is_object()) throw FormatError("no table of settings");
  check_kind(file);
  LlamaConfig config;
  config.vocab_size = size_of(file, "vocab_size");
  config.hidden_size = size_of(file, "hidden_size");
  config.mlp_size = size_of(file, "intermediate_size");
  config.num_layers = size_of(file, "num_hidden_layers");
  config.num_heads = size_of(file, "num_attention_heads");
  config.num_kv_heads = size_of(file, "num_key_value_heads", config.num_heads);
  const int64_t share = config.hidden_size / config.num_heads;
  config.head_size = size_of(file, "head_dim", share);
  config.norm_eps = number_of(file, "rms_norm_eps", 1e-6);
  read_rope(file, config);
  if (config.num_heads % config.num_kv_heads != 0) {
    throw FormatError(fmt::format("{} heads cannot share {} keys and values",
                                  config.num_heads, config.num_kv_heads));
  }
  if (config.num_layers > kMostLayers ||
      config.num_heads * config.head_size > kLargestSize) {
    throw FormatError(fmt::format("{} layers of {} heads of size {}",
                                  config.num_layers, config.num_heads,
                                  config.head_size));
  }
  if (config.head_size % 2 != 0 || config.head_size == 0) {
    throw FormatError(
        fmt::format("heads of size {} have no pairs", config.head_size));
  }
  return config;
}

}  // namespace

LlamaConfig llama_preset(const std::string& name) {
  if (name == "llama3_8b") return {};
  if (name == "llama_tiny") {
    return {.vocab_size = 258,
            .hidden_size = 32,
            .mlp_size = 64,
            .num_layers = 2,
            .num_heads = 4,
            .num_kv_heads = 2,
            .head_size = 8};
  }
  throw ConfigError(fmt::format(
      "there is no LLaMA preset '{}'; there are llama_tiny and llama3_8b",
      name));
}

LlamaConfig parse_llama_config(std::string_view json) {
  try {
    return parse(Json::parse(json));
  } catch (const Json::exception& error) {
    throw FormatError(base::as_utf8(error.what()));
  }
}

LlamaConfig read_llama_config(const std::filesystem::path& path) {
  const std::string text = base::read_file(path);
  try {
    return parse_llama_config(text);
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("'{}' describes no LLaMA model: {}",
                                  path.string(), error.what()));
  }
}

std::string describe(const LlamaConfig& config) {
  std::string text = fmt::format(
      "llama vocab {} hidden {} mlp {} layers {} heads {} of {} kv {} eps {} "
      "theta {}",
      config.vocab_size, config.hidden_size, config.mlp_size, config.num_layers,
      config.num_heads, config.head_size, config.num_kv_heads, config.norm_eps,
      config.rope_theta);
  if (const auto& scaling = config.rope_scaling) {
    text += fmt::format(" scaling {} {} {} {}", scaling->factor,
                        scaling->low_factor, scaling->high_factor,
                        scaling->old_context);
  }
  return text;
}

}  // namespace lockstep::llama
