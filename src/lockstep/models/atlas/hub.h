// Models of the Hugging Face hub that were downloaded to this machine.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "lockstep/base/environment.h"

namespace lockstep::atlas {

// `name`: a file or folder, or a name of the hub, "owner/name", whose files lie
// in the local cache: $HF_HUB_CACHE, $HF_HOME/hub or
// ~/.cache/huggingface/hub. Gives a path that exists; of the cache it is the
// folder of the commit that `main` was last. Nothing is downloaded. Throws
// ConfigError that names `setting`, where it was looked for and the command
// that downloads it.
std::filesystem::path find_model(
    const std::string& name, std::string_view setting,
    const base::Environment& environment = base::process_environment());

}  // namespace lockstep::atlas
