// Finds models in the local Hugging Face cache.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "lockstep/base/environment.h"

namespace lockstep::atlas {

// `name`: a file or folder, or a hub name, "owner/name", in the local cache:
// $HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub. Returns an existing
// path; in the cache, the snapshot folder of `main`. Nothing is downloaded.
// Throws ConfigError with `setting`, the places searched and the download
// command.
std::filesystem::path find_model(
    const std::string& name, std::string_view setting,
    const base::Environment& environment = base::process_environment());

}  // namespace lockstep::atlas
