#include "distributed/original_layouts.h"

#include "lockstep/cli/command_line.h"
#include "lockstep/recipes/dit/dit.h"
#include "lockstep/recipes/jit/jit.h"

namespace lockstep::testing {

OriginalLayout original_layout(const std::string& name) {
  if (name == "jit") {
    return {.files = {.checkpoint = "checkpoint_epoch_{epoch}.pth",
                      .best = "best_model.pth"},
            .checkpoint = {.step = "", .loss = "loss"}};
  }
  if (name == "jit_images") {
    recipes::JitRecipe recipe;
    cli::CommandLine line(Purpose::kTrain, recipe);
    line.parse({"--data_kind=images"}, {});
    return {.files = {.checkpoint = "checkpoint-{epoch}.pth",
                      .last = "checkpoint-last.pth"},
            .checkpoint = line.settings().checkpoint};
  }
  if (name == "dit") {
    recipes::DitRecipe recipe;
    Settings settings;
    recipe.describe(settings);
    return {.files = settings.files, .checkpoint = settings.checkpoint};
  }
  if (name == "scribble") {
    return {.files = {.checkpoint = "checkpoint_{epoch}.pth",
                      .best = "model_best.pth",
                      .log = "log.txt",
                      .last = "last_checkpoint.pth"},
            .checkpoint = {.model = {{.key = "state_dict"}},
                           .step = "",
                           .optimizer = "optimizer",
                           .scheduler = "",
                           .best = "best_pred",
                           .best_metrics = {"loss", "error"}}};
  }
  if (name == "protein") {
    return {.files = {.checkpoint = "checkpoint_epoch_{epoch}.pt"},
            .checkpoint = {
                .model = {{.key = "encoder_state_dict", .prefix = "first."},
                          {.key = "decoder_state_dict", .prefix = "last."}},
                .step = "",
                .loss = "loss",
                .train_losses = "train_losses",
                .val_losses = "val_losses"}};
  }
  if (name == "atlas") {
    return {
        .checkpoint = {.scaler = "scaler_state_dict", .best = "best_val_loss"}};
  }
  return {};
}

}  // namespace lockstep::testing
