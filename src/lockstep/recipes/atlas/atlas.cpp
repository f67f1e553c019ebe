#include "lockstep/recipes/atlas/atlas.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <utility>

#include "lockstep/datasets/episodes/prepare_program.h"
#include "lockstep/error.h"
#include "lockstep/recipes/atlas/atlas_task.h"

namespace lockstep::recipes {
namespace {

constexpr size_t kGripper = formats::kActionSize - 1;

bool is_generated(const std::string& data_dir) {
  return data_dir.starts_with("builtin:");
}

// Splits of a folder come from conversions: the error explains how to create
// them.
[[noreturn]] void refuse_missing_data(const AtlasSettings& settings,
                                      const ConfigError& error) {
  throw ConfigError(fmt::format(
      "{}\ndata.use_huggingface: {} is read from data_dir after\n"
      "  hf download --repo-type dataset {}\n"
      "  lockstep prepare atlas --from lerobot --input FOLDER_OF_THE_DOWNLOAD "
      "--output {}",
      error.what(), settings.file.hf_dataset_name,
      settings.file.hf_dataset_name, settings.frames.data_dir));
}

episodes::FrameSources open_frame_sources(const AtlasSettings& settings) {
  try {
    return episodes::open_frames(settings.frames);
  } catch (const ConfigError& error) {
    if (!settings.file.use_huggingface ||
        is_generated(settings.frames.data_dir)) {
      throw;
    }
    refuse_missing_data(settings, error);
  }
}

// "auto" becomes the range of the data.
std::string gripper_range(const std::string& asked,
                          const episodes::FrameSource& source) {
  if (asked != "auto") return asked;
  for (int64_t i = 0; i < source.num_episodes(); ++i) {
    for (int64_t frame = 0; frame < source.num_frames(i); ++frame) {
      if (source.action(i, frame)[kGripper] < 0) return "minus_one_one";
    }
  }
  return "zero_one";
}

// Their construction must not change the initial weights of the model.
std::shared_ptr<atlas::Encoders> open_encoders(
    const atlas::EncoderSettings& settings) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor state = generator.get_state();
  auto encoders = std::make_shared<atlas::Encoders>(settings);
  generator.set_state(state);
  return encoders;
}

// With the validation data of `lockstep eval`.
episodes::FrameSources open_eval_sources(AtlasSettings& settings) {
  const bool is_train = settings.split == settings.frames.train_split;
  if (!is_train && settings.split != "val") {
    settings.frames.val_split = settings.split;
  }
  episodes::FrameSources sources = open_frame_sources(settings);
  if (is_train) sources.validation = sources.train;
  return sources;
}

void require_observation(const AtlasSettings& settings) {
  if (settings.workspace.empty() || settings.instruction.empty()) {
    throw ConfigError(
        "--workspace IMAGE and --instruction TEXT are missing: what the "
        "robot sees and is told to do");
  }
  if (settings.frames.use_wrist_camera && settings.wrist.empty()) {
    throw ConfigError(
        "--wrist IMAGE is missing: this model was trained with two views "
        "(use_wrist_camera)");
  }
}

}  // namespace

std::unique_ptr<Task> AtlasRecipe::build(const Settings& settings,
                                         Purpose purpose) {
  AtlasSettings own = settings_;
  own.frames.data_dir = settings.common.data_path;
  episodes::FrameSources sources;
  // Before the large networks, so that errors in the data are found early.
  if (purpose == Purpose::kSample) {
    require_observation(own);
  } else {
    sources = purpose == Purpose::kEval ? open_eval_sources(own)
                                        : open_frame_sources(own);
    // Saved in the run's settings.
    own.gripper_range = gripper_range(own.gripper_range, *sources.train);
    settings_.gripper_range = own.gripper_range;
  }
  own.model.gripper = own.gripper_range == "minus_one_one"
                          ? atlas::GripperRange::kMinusOneOne
                          : atlas::GripperRange::kZeroOne;
  const auto encoders = open_encoders(own.encoders);
  own.model.geometry.token_size = encoders->token_size();
  own.model.fusion.language_size = encoders->language_size();
  atlas::check_atlas_config(own.model);
  return std::make_unique<AtlasTask>(own, encoders, sources, purpose);
}

bool AtlasRecipe::takes(const Arguments& arguments) const {
  return episodes::is_for_prepare_program(arguments);
}

std::string AtlasRecipe::prepare(const Arguments& arguments,
                                 const Progress& /*progress*/) {
  episodes::become_prepare_program(arguments);
}

}  // namespace lockstep::recipes
