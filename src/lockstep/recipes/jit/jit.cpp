#include "lockstep/recipes/jit/jit.h"

#include <fmt/format.h>

#include <filesystem>

#include "lockstep/error.h"
#include "lockstep/recipes/jit/image_task.h"
#include "lockstep/recipes/jit/text_task.h"

namespace lockstep::recipes {
namespace {

void require_data(const std::string& path) {
  const bool is_there = path.starts_with("builtin:")
                            ? path == "builtin:text" || path == "builtin:shapes"
                            : std::filesystem::exists(path);
  if (is_there) return;
  throw ConfigError(fmt::format(
      "--data_path {}: there is no such data; usable are text "
      "(.json, .jsonl, .txt, or a folder of such files), a folder with one "
      "sub-folder of images per class, the folder of CIFAR-10, "
      "builtin:text and builtin:shapes",
      path));
}

}  // namespace

std::unique_ptr<Task> JitRecipe::build(const Settings& settings,
                                       Purpose purpose) {
  if (purpose != Purpose::kSample) require_data(settings.common.data_path);
  if (settings_.data_kind == "images") {
    return build_jit_images(settings.common, purpose, settings_);
  }
  return build_jit_text(settings.common, purpose, settings_);
}

}  // namespace lockstep::recipes
