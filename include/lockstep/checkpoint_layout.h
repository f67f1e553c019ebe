// File names of a run and keys of its checkpoints.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

// "{step}" and "{epoch}" are placeholders.
struct FileNames {
  std::string checkpoint = "checkpoint_step_{step}.pt";
  // The checkpoint at the end of an epoch; empty: named like the others.
  std::string epoch_checkpoint = {};
  std::string best = "best_model.pt";
  std::string log = "train.log";
  // A second name of the newest checkpoint; empty: none.
  std::string last = {};
};

struct ModelPart {
  std::string key = {};
  // Prefix of the parameters in this part, removed in the file: "encoder.".
  std::string prefix = {};
};

enum class AverageLayout {
  kStateDict,  // {name: tensor}
  // Names without dots, next to "decay" and "num_updates": the format of LitEma
  // in many diffusion projects.
  kDotless,
};

// The keys of a checkpoint file. A recipe uses those of its original project,
// so that each project reads the files of the other. An empty key is not
// written. Everything else that a run needs is saved under "lockstep".
struct CheckpointLayout {
  std::vector<ModelPart> model = {{.key = "model_state_dict"}};
  std::string epoch = "epoch";  // Whole epochs done.
  std::string step = "global_step";
  std::string optimizer = "optimizer_state_dict";  // As torch.optim saves it.
  std::string scheduler = "scheduler_state_dict";  // As torch's lr_scheduler.
  std::string scaler = {};        // As torch.amp; {} without loss scaling.
  std::string settings = {};      // All settings, a dict.
  std::string loss = {};          // Training loss of the last epoch.
  std::string train_losses = {};  // A list, per epoch.
  std::string val_losses = {};    // A list, per validation.
  std::string best = {};
  // Metrics of the best validation, as a tuple under `best`. Empty: the one
  // number that chose it.
  std::vector<std::string> best_metrics = {};
  std::vector<std::string> averages = {};  // One key per moving average.
  AverageLayout average_layout = AverageLayout::kStateDict;
};

}  // namespace lockstep
