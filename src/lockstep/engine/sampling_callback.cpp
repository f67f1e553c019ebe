#include "lockstep/engine/sampling_callback.h"

#include <algorithm>
#include <filesystem>

#include "lockstep/engine/file_names.h"
#include "lockstep/engine/loop.h"

namespace lockstep::engine {

SamplingCallback::SamplingCallback(Sampling& sampling,
                                   const SamplingCallbackConfig& config)
    : sampling_(sampling), config_(config) {}

void SamplingCallback::after_step(TrainLoop& loop, const Step& /*step*/) {
  TrainState& state = loop.state();
  state.due.sampling = sampling_.num_items() > 0 && config_.every &&
                       (state.step % *config_.every == 0 || loop.is_finished());
}

bool SamplingCallback::due(const TrainLoop& loop) const {
  return loop.state().due.sampling;
}

bool SamplingCallback::run(TrainLoop& loop) {
  if (!sample_with(loop, std::nullopt)) return false;
  if (sampling_.samples_averages()) {
    for (size_t i = 0; i < loop.learner().averages().size(); ++i) {
      if (!sample_with(loop, static_cast<int64_t>(i))) return false;
    }
  }
  loop.state().due.sampling = false;
  return true;
}

bool SamplingCallback::sample_with(TrainLoop& loop,
                                   std::optional<int64_t> average) {
  const World& world = loop.world();
  auto& averages = loop.learner().averages();
  const auto items = sample_items(
      sampling_, loop.learner(), world,
      {.num_items = config_.is_dry_run
                        ? std::min<int64_t>(sampling_.num_items(), world.size())
                        : sampling_.num_items(),
       .batch_size = config_.batch_size,
       .seed = config_.seed,
       .average =
           average ? &averages.at(static_cast<size_t>(*average)) : nullptr},
      loop.go_on("sample", base::Activity::kSampling));
  if (!items) return false;
  if (world.is_main() && !config_.is_dry_run) {
    record(loop, render_items(sampling_, *items, average));
  }
  return true;
}

void SamplingCallback::record(TrainLoop& loop,
                              const std::vector<OutputFile>& files) {
  const TrainState& state = loop.state();
  track::Record record{.step = state.step};
  for (const OutputFile& file : files) {
    record.files.push_back(
        {.name = output_name(file.name, state.step, state.position.epoch),
         .bytes = file.bytes});
    const std::filesystem::path name = file.name;
    if (name.extension() == ".png") {
      record.images.push_back({.title = file.title, .png = file.bytes});
    } else if (name.extension() == ".txt") {
      record.texts.push_back({.title = file.title, .text = file.bytes});
    }
  }
  loop.record(std::move(record));
}

}  // namespace lockstep::engine
