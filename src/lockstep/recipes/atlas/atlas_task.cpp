#include "lockstep/recipes/atlas/atlas_task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "lockstep/data/image_ops.h"
#include "lockstep/models/atlas/losses.h"

namespace lockstep::recipes {
namespace {

const at::Tensor& actions_of(const Batch& batch) {
  return batch.tensors.back();
}

}  // namespace

AtlasTask::AtlasTask(const AtlasSettings& settings,
                     std::shared_ptr<atlas::Encoders> encoders,
                     const episodes::FrameSources& sources, Purpose purpose)
    : settings_(settings),
      encoders_(std::move(encoders)),
      frozen_(encoders_->frozen()),
      model_(std::make_shared<atlas::AtlasModel>(settings.model)) {
  if (const auto vision = encoders_->trained_vision()) {
    model_->register_module("vggt", vision);
  }
  if (const auto language = encoders_->trained_language()) {
    model_->register_module("lang_encoder", language);
  }
  if (sources.train) open_sets(sources, purpose);
}

TaskInfo AtlasTask::info() const {
  return {
      .subject = fmt::format("{} and {}{}", settings_.encoders.vggt_checkpoint,
                             settings_.encoders.lang_encoder_name, data_text_),
      .memory_remedies = {"--batch_size 4 --gradient_accumulation_steps 2",
                          "--point_stride 2", "--encoder_precision bf16",
                          "--freeze_vggt true --freeze_lang_encoder true"},
      .frozen = frozen_,
      // token_query, and the heads of a VGGT that is trained.
      .has_unused_parameters = true,
      .shapes = BatchShapes::kDynamic,
      .sync_batch_norm = settings_.encoders.use_pointnet};
}

bool AtlasTask::uses_cache() const {
  return settings_.cache_features && settings_.encoders.freeze_vggt &&
         settings_.encoders.freeze_lang_encoder;
}

std::shared_ptr<const Dataset> AtlasTask::make_set(
    std::shared_ptr<const episodes::FrameSource> source) {
  const episodes::FrameSetConfig config{
      .source = std::move(source),
      .encoders = encoders_,
      .use_wrist_camera = settings_.frames.use_wrist_camera};
  if (!uses_cache()) return std::make_shared<episodes::ImageFrames>(config);
  cached_.push_back(std::make_shared<episodes::CachedFrames>(config));
  return cached_.back();
}

void AtlasTask::open_sets(const episodes::FrameSources& sources,
                          Purpose purpose) {
  sets_.train = make_set(sources.train);
  if (sources.validation == sources.train) {
    sets_.validation = sets_.train;
  } else if (sources.validation) {
    sets_.validation = make_set(sources.validation);
    // Evaluation does not need features of training frames.
    if (uses_cache() && purpose == Purpose::kEval) {
      cached_.erase(cached_.begin());
    }
  }
  data_text_ =
      fmt::format(": {} episodes to train, {} to validate; gripper {}{}",
                  sources.train->num_episodes(),
                  sources.validation ? sources.validation->num_episodes() : 0,
                  settings_.gripper_range,
                  uses_cache() ? "; features in " + settings_.cache_dir : "");
}

at::Device AtlasTask::device() const {
  return model_->parameters().front().device();
}

void AtlasTask::move_encoders() {
  if (are_encoders_moved_) return;
  encoders_->move_to(device());
  are_encoders_moved_ = true;
}

CacheProgress AtlasTask::fill_cache(const Shard& shard) {
  if (cached_.empty()) return {};
  if (work_ != nullptr) return work_->step();
  move_encoders();
  const auto cache = std::make_shared<episodes::FeatureCache>(
      settings_.cache_dir,
      episodes::FeatureKeys{.images = encoders_->image_key(),
                            .sentences = encoders_->sentence_key()});
  for (const auto& set : cached_) set->use(cache);
  work_ = std::make_unique<episodes::FeatureWork>(
      episodes::FeatureWorkConfig{.encoders = encoders_,
                                  .cache = cache,
                                  .sets = cached_,
                                  .device = device(),
                                  .batch_size = settings_.cache_batch_size},
      shard);
  return work_->step();
}

atlas::AtlasInput AtlasTask::input_of(const Batch& batch) {
  atlas::AtlasInput input;
  if (batch.tensors.size() == episodes::kNumFeatureParts) {
    input.views = {.tokens = batch[episodes::kTokens],
                   .pose = batch[episodes::kPose],
                   .points = batch[episodes::kPoints]};
    input.language = batch[episodes::kLanguage];
    input.mask = batch[episodes::kLanguageMask];
  } else {
    move_encoders();
    input.views = encoders_->see(batch[episodes::kImages]);
    input.language =
        encoders_->read(batch[episodes::kIds], batch[episodes::kIdMask]);
    input.mask = batch[episodes::kIdMask];
  }
  // Features may be narrower than the weights, without autocast.
  const auto type = model_->parameters().front().scalar_type();
  for (at::Tensor* part : {&input.views.tokens, &input.views.pose,
                           &input.views.points, &input.language}) {
    if (part->defined()) *part = part->to(type);
  }
  return input;
}

Loss AtlasTask::loss(const Batch& batch, SampleRandom& /*random*/) {
  const atlas::AtlasOutput output = model_->forward(input_of(batch));
  const atlas::AtlasLosses losses = atlas::atlas_losses(
      output, actions_of(batch), settings_.loss, settings_.model.gripper);
  const at::Tensor pose = losses.pose.sum();
  const at::Tensor gripper = losses.gripper.sum();
  return {.sum = settings_.loss.pose_weight * pose +
                 settings_.loss.gripper_weight * gripper,
          .parts = {{"pose_loss", pose}, {"gripper_loss", gripper}}};
}

void AtlasTask::evaluate(const Batch& batch, SampleRandom& /*random*/,
                         MetricSums& sums) {
  const atlas::AtlasOutput output = model_->forward(input_of(batch));
  const at::Tensor& actions = actions_of(batch);
  const atlas::AtlasLosses losses = atlas::atlas_losses(
      output, actions, settings_.loss, settings_.model.gripper);
  const atlas::AtlasErrors errors =
      atlas::atlas_errors(output, actions, settings_.model.gripper);
  const auto add = [&](const char* name, const at::Tensor& values) {
    sums.add(name, values, static_cast<double>(batch.size()));
  };
  add("loss", settings_.loss.pose_weight * losses.pose +
                  settings_.loss.gripper_weight * losses.gripper);
  add("pose_loss", losses.pose);
  add("gripper_loss", losses.gripper);
  add("pose_l2_error", errors.pose_l2);
  add("pose_l1_error", errors.pose_l1);
  add("gripper_error", errors.gripper);
  add("gripper_accuracy", errors.gripper_is_right);
}

std::vector<OutputFile> AtlasTask::predict(int64_t /*input*/) {
  const int side = settings_.frames.image_size;
  std::vector<at::Tensor> views = {
      data::to_tensor(episodes::load_view(settings_.workspace, side))};
  if (settings_.frames.use_wrist_camera) {
    views.push_back(
        data::to_tensor(episodes::load_view(settings_.wrist, side)));
  }
  const auto ids = encoders_->tokenize(settings_.instruction);
  Batch batch{.tensors = {at::stack(views).unsqueeze(0).to(device()),
                          at::tensor(ids, at::kLong).unsqueeze(0).to(device()),
                          {},
                          {}},
              .indices = {0}};
  batch.tensors[episodes::kIdMask] =
      at::ones_like(batch[episodes::kIds], at::kBool);
  const atlas::AtlasOutput output = model_->forward(input_of(batch));
  const at::Tensor action =
      at::cat({output.pose, output.gripper}, 1).to(at::kFloat).cpu();
  nlohmann::ordered_json json;
  for (size_t i = 0; i < formats::kActionSize; ++i) {
    json[std::string(formats::kActionNames[i])] =
        action[0][static_cast<int64_t>(i)].item<float>();
  }
  return {
      {.name = "action.json", .bytes = json.dump() + "\n", .is_shown = true}};
}

}  // namespace lockstep::recipes
