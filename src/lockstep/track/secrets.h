// Settings and arguments as they may be shown to others.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::track {

// Whether a setting of this name holds something that nobody else may see:
// "token", "--hf-token", "wandb.api_key", "password". Names that only count
// tokens ("max_tokens") are none.
bool is_secret_name(std::string_view name);

// The values of such settings become "***", at any depth. The text must be
// JSON.
std::string json_without_secrets(std::string_view json);

// "--token X" becomes "--token ***", "token=X" becomes "token=***".
std::vector<std::string> arguments_without_secrets(
    std::span<const std::string> arguments);

}  // namespace lockstep::track
