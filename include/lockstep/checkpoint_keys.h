// Which key of a checkpoint holds what.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

struct ModelPart {
  std::string key = {};
  // Parameters whose names begin so lie there, without it: "encoder.".
  std::string prefix = {};
};

enum class AverageLayout {
  kStateDict,  // {name: tensor}
  // Names without their dots; "decay" and "num_updates" beside them. What
  // LitEma of many diffusion projects saves.
  kDotless,
};

// A recipe takes the keys of its original project, so that the programs of both
// read the files of both. An empty key: the files do not have it. All else that
// a run needs lies under "lockstep".
struct CheckpointKeys {
  std::vector<ModelPart> model = {{.key = "model_state_dict"}};
  std::string epoch = "epoch";  // Whole epochs done.
  std::string step = "global_step";
  std::string optimizer = "optimizer_state_dict";  // Of torch.optim.
  std::string scheduler = "scheduler_state_dict";  // Of torch's lr_scheduler.
  std::string scaler = {};        // Of torch.amp; {} without loss scaling.
  std::string settings = {};      // All settings, a dict.
  std::string loss = {};          // The training loss of the last epoch.
  std::string train_losses = {};  // Of every epoch.
  std::string val_losses = {};    // Of every validation.
  std::string best = {};
  // Of the best validation, as a tuple under `best`. None: the one number that
  // chose it.
  std::vector<std::string> best_metrics = {};
  std::vector<std::string> averages = {};  // One key per moving average.
  AverageLayout average_layout = AverageLayout::kStateDict;
};

}  // namespace lockstep
