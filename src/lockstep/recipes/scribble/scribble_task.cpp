#include "lockstep/recipes/scribble/scribble_task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/data/image_ops.h"
#include "lockstep/data/label_map.h"
#include "lockstep/models/deeplab/confusion.h"
#include "lockstep/models/deeplab/losses.h"
#include "lockstep/models/deeplab/weights.h"
#include "lockstep/recipes/images/grid.h"

namespace lockstep::recipes {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kShownImages = 4;

// `classes`: uint8 [H, W] on any device.
data::Image as_image(const at::Tensor& classes) {
  const at::Tensor bytes = classes.to(at::kCPU).contiguous();
  data::Image image = data::make_image(static_cast<int>(bytes.size(1)),
                                       static_cast<int>(bytes.size(0)), 1);
  const auto* begin = bytes.const_data_ptr<uint8_t>();
  image.pixels.assign(begin, begin + bytes.numel());
  return image;
}

LossTerm term(const char* name, double weight, const deeplab::LossSum& loss) {
  return {.name = name,
          .weight = weight,
          .sum = loss.sum,
          .normaliser = loss.normaliser};
}

}  // namespace

ScribbleTask::ScribbleTask(const ScribbleSettings& settings,
                           ScribbleTaskData data)
    : settings_(settings),
      data_(std::move(data)),
      model_(std::make_shared<deeplab::ScribbleNet>(settings.model)) {
  if (data_.first_weights)
    deeplab::load_scribble_weights(*model_, *data_.first_weights);
  deeplab::make_channels_last(*model_);
}

TaskInfo ScribbleTask::info() const {
  return {.subject = fmt::format("{}, {} layers, on {} classes{}",
                                 settings_.model.type, settings_.model.layers,
                                 settings_.model.num_classes, data_.text),
          .best_metric = "iou",
          .better = Better::kHigher,
          .memory_remedies = {"--batchsize 4", "--crop_size 321"},
          .has_unused_parameters = deeplab::has_lorm(settings_.model) &&
                                   settings_.weights.l_lorm == 0,
          .shapes = BatchShapes::kStatic,
          .sync_batch_norm = true,
          .flops_per_sample =
              3 * deeplab::scribble_forward_flops(settings_.model,
                                                  settings_.data.augment.side)};
}

// uint8 [B, 3, H, W] -> ImageNet's mean 0 and deviation 1.
at::Tensor ScribbleTask::normalised(const at::Tensor& images) {
  const at::TensorOptions options = model_->parameters()[0].options();
  if (!mean_.defined() || mean_.device() != options.device() ||
      mean_.dtype() != options.dtype()) {
    mean_ =
        torch::tensor({123.675, 116.28, 103.53}).view({3, 1, 1}).to(options);
    scale_ = torch::tensor({1 / 58.395, 1 / 57.12, 1 / 57.375})
                 .view({3, 1, 1})
                 .to(options);
  }
  return ((images.to(options.dtype()) - mean_) * scale_)
      .contiguous(at::MemoryFormat::ChannelsLast);
}

Loss ScribbleTask::loss(const Batch& batch, SampleRandom& /*random*/) {
  const ScribbleWeights& weights = settings_.weights;
  const double pseudo = pseudo_weight(weights);
  const deeplab::ScribbleOutput output = model_->forward(normalised(batch[0]));
  const at::Tensor found = deeplab::log_probabilities(
      output.logits, batch[0].size(2), batch[0].size(3));
  const at::Tensor& pseudo_labels =
      batch[settings_.data.mode == voc::ScribbleMode::kPseudoOnly ? 1 : 2];
  Loss loss;
  if (weights.l_segs > 0) {
    loss.terms.push_back(term("seg_loss", weights.l_segs,
                              deeplab::cross_entropy(found, batch[1])));
  }
  if (pseudo > 0) {
    loss.terms.push_back(
        term("pesudolabel_loss", pseudo,
             deeplab::cross_entropy(found, batch[2], weights.label_smooth)));
  }
  if (weights.l_ds > 0 || weights.l_dc > 0) {
    const at::Tensor entropy = deeplab::pixel_entropy(found);
    if (weights.l_ds > 0) {
      loss.terms.push_back(term("l_ds", weights.l_ds,
                                deeplab::weighted_entropy(entropy, batch[3])));
    }
    if (weights.l_dc > 0) {
      loss.terms.push_back(term("l_dc", weights.l_dc,
                                deeplab::weighted_entropy(entropy, batch[4])));
    }
  }
  if (weights.l_lorm > 0) {
    loss.terms.push_back(
        term("lorm_loss", weights.l_lorm,
             model_->lorm_loss(output.features, pseudo_labels)));
  }
  return loss;
}

void ScribbleTask::evaluate_centres(const Batch& batch, MetricSums& sums) {
  const deeplab::ScribbleOutput output = model_->forward(normalised(batch[0]));
  const at::Tensor found = deeplab::log_probabilities(
      output.logits, batch[0].size(2), batch[0].size(3));
  const deeplab::LossSum loss = deeplab::cross_entropy(found, batch[1]);
  sums.add("loss", loss.sum, loss.normaliser);
  sums.add_counts("confusion",
                  deeplab::confusion_matrix(batch[1], found.argmax(1),
                                            settings_.model.num_classes));
}

at::Tensor ScribbleTask::segment(const at::Tensor& image) {
  const deeplab::Segment by_model = [&](const at::Tensor& windows) {
    return deeplab::resize_maps(model_->forward(windows).logits,
                                windows.size(2), windows.size(3));
  };
  return deeplab::segment_by_windows(normalised(image.unsqueeze(0)).squeeze(0),
                                     by_model, settings_.windows)
      .argmax(0)
      .to(at::kByte);
}

void ScribbleTask::evaluate(const Batch& batch, SampleRandom& /*random*/,
                            MetricSums& sums) {
  if (data_.whole == nullptr) return evaluate_centres(batch, sums);
  for (int64_t i = 0; i < batch.size(); ++i) {
    const int64_t height = batch[2][i][0].item<int64_t>();
    const int64_t width = batch[2][i][1].item<int64_t>();
    const auto cut = [&](const at::Tensor& map) {
      return map.slice(-2, 0, height).slice(-1, 0, width);
    };
    const at::Tensor classes = segment(cut(batch[0][i]));
    sums.add_counts("confusion",
                    deeplab::confusion_matrix(cut(batch[1][i]), classes,
                                              settings_.model.num_classes));
    if (settings_.save_path.empty()) continue;
    const fs::path path =
        fs::path(settings_.save_path) /
        (data_.whole->name(batch.indices[static_cast<size_t>(i)]) + ".png");
    base::make_output_folder(path.parent_path());
    base::write_file_atomically(
        path, data::encode_palette_png(as_image(classes), data::voc_palette()));
  }
}

Metrics ScribbleTask::derive(const MetricCounts& counts) const {
  const auto confusion = counts.find("confusion");
  if (confusion == counts.end()) return {};
  const deeplab::SegmentationScores scores =
      deeplab::segmentation_scores(confusion->second);
  return {{"iou", scores.iou}, {"acc", scores.accuracy}};
}

std::vector<OutputFile> ScribbleTask::report(const Metrics& /*metrics*/,
                                             const MetricCounts& counts) {
  if (settings_.save_path.empty()) return {};
  const deeplab::SegmentationScores scores =
      deeplab::segmentation_scores(counts.at("confusion"));
  std::string text = fmt::format("IOU_All: {:.6f}\nIOU_Ind:", scores.iou);
  for (const double iou : scores.iou_of_class) {
    text += fmt::format(" {:.6f}", iou);
  }
  text += fmt::format("\nACC_Pix: {:.6f}\n", scores.accuracy);
  const fs::path path = fs::absolute(settings_.save_path).string() + ".txt";
  std::error_code error;
  if (fs::exists(path, error)) text = base::read_file(path) + text;
  return {{.name = path.string(), .bytes = text}};
}

int64_t ScribbleTask::num_items() const {
  return data_.shown ? std::min(kShownImages, data_.shown->size()) : 0;
}

// For each item the image, the truth and the prediction.
at::Tensor ScribbleTask::sample(std::span<const int64_t> items,
                                SampleRandom& /*random*/) {
  std::vector<at::Tensor> rows;
  for (const int64_t item : items) {
    // Numbers beyond the last item keep ranks in step.
    const Sample shown = data_.shown->get(item % data_.shown->size(), 0);
    const at::Tensor image =
        shown[0].to(model_->parameters()[0].device()).unsqueeze(0);
    const deeplab::ScribbleOutput output = model_->forward(normalised(image));
    const at::Tensor classes =
        deeplab::resize_maps(output.logits, image.size(2), image.size(3))
            .argmax(1)
            .squeeze(0)
            .to(at::kByte);
    rows.push_back(torch::stack(
        {shown[0], data::to_tensor(voc::coloured(as_image(shown[1]))),
         data::to_tensor(voc::coloured(as_image(classes)))}));
  }
  return torch::stack(rows).to(model_->parameters()[0].device());
}

std::vector<OutputFile> ScribbleTask::render(const at::Tensor& items) {
  const Grid grid = make_grid(items.flatten(0, 1).unsqueeze(1), {.columns = 3});
  return {{.name = "images/step{step}.png",
           .bytes = last_image(grid),
           .title = "label_scribble&pred_seg"}};
}

std::vector<OutputFile> ScribbleTask::predict(int64_t input) {
  const data::Image image = data_.own_images.read(input);
  const at::Tensor classes =
      segment(data::to_tensor(image).to(model_->parameters()[0].device()));
  return voc::segmentation_files(data_.own_images.name(input), image,
                                 as_image(classes));
}

}  // namespace lockstep::recipes
