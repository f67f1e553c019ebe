#include "distributed/original_layouts.h"

#include "lockstep/recipes/dit/dit.h"
#include "lockstep/recipes/jit/image_recipe.h"

namespace lockstep::testing {

OriginalLayout original_layout(const std::string& name) {
  if (name == "jit") {
    return {.files = {.checkpoint = "checkpoint_epoch_{epoch}.pth",
                      .best = "best_model.pth"},
            .keys = {.step = "", .loss = "loss"}};
  }
  if (name == "jit_images") {
    const JitShared shared;
    return {.files = {.checkpoint = "checkpoint-{epoch}.pth",
                      .last = "checkpoint-last.pth"},
            .keys = JitImageRecipe(shared).facts().keys};
  }
  if (name == "dit") {
    const TaskInfo facts = DitRecipe().facts();
    return {.files = facts.files, .keys = facts.keys};
  }
  if (name == "scribble") {
    return {.files = {.checkpoint = "checkpoint_{epoch}.pth",
                      .best = "model_best.pth",
                      .log = "log.txt",
                      .last = "last_checkpoint.pth"},
            .keys = {.model = {{.key = "state_dict"}},
                     .step = "",
                     .optimizer = "optimizer",
                     .scheduler = "",
                     .best = "best_pred",
                     .best_metrics = {"loss", "error"}}};
  }
  if (name == "protein") {
    return {
        .files = {.checkpoint = "checkpoint_epoch_{epoch}.pt"},
        .keys = {.model = {{.key = "encoder_state_dict", .prefix = "first."},
                           {.key = "decoder_state_dict", .prefix = "last."}},
                 .step = "",
                 .loss = "loss",
                 .train_losses = "train_losses",
                 .val_losses = "val_losses"}};
  }
  if (name == "atlas") {
    return {.keys = {.scaler = "scaler_state_dict", .best = "best_val_loss"}};
  }
  return {};
}

}  // namespace lockstep::testing
