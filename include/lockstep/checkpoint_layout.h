// How the files of a run are named, and where a checkpoint keeps what.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

// "{step}" and "{epoch}" stand for numbers.
struct FileNames {
  std::string checkpoint = "checkpoint_step_{step}.pt";
  // The checkpoint at the end of an epoch; empty: named as any other.
  std::string epoch_checkpoint = {};
  std::string best = "best_model.pt";
  std::string log = "train.log";
  // A second name of the newest checkpoint; empty: none.
  std::string last = {};
};

struct ModelPart {
  std::string key = {};
  // Holds the parameters whose names begin so, without it: "encoder.".
  std::string prefix = {};
};

enum class AverageLayout {
  kStateDict,  // {name: tensor}
  // Names without their dots, beside "decay" and "num_updates": what LitEma of
  // many diffusion projects saves.
  kDotless,
};

// The keys of a checkpoint file. A recipe takes those of its original project,
// so that the programs of both read the files of both. An empty key: the files
// do not have it. All else that a run needs is saved under "lockstep".
struct CheckpointLayout {
  std::vector<ModelPart> model = {{.key = "model_state_dict"}};
  std::string epoch = "epoch";  // Whole epochs done.
  std::string step = "global_step";
  std::string optimizer = "optimizer_state_dict";  // As torch.optim saves it.
  std::string scheduler = "scheduler_state_dict";  // As torch's lr_scheduler.
  std::string scaler = {};        // As torch.amp; {} without loss scaling.
  std::string settings = {};      // All settings, a dict.
  std::string loss = {};          // Training loss of the last epoch.
  std::string train_losses = {};  // Of every epoch, a list.
  std::string val_losses = {};    // Of every validation, a list.
  std::string best = {};
  // Metrics of the best validation, as a tuple under `best`. Empty: the one
  // number that chose it.
  std::vector<std::string> best_metrics = {};
  std::vector<std::string> averages = {};  // One key per moving average.
  AverageLayout average_layout = AverageLayout::kStateDict;
};

}  // namespace lockstep
