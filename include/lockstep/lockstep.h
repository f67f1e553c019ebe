// What a training loop of your own needs, in one include; lockstep/train.h is
// for recipes.
#pragma once

#include "lockstep/error.h"
#include "lockstep/checkpoint_file.h"
#include "lockstep/module_state.h"
#include "lockstep/checkpoint_saver.h"
#include "lockstep/world.h"
#include "lockstep/loader.h"
#include "lockstep/step_loader.h"
#include "lockstep/distributed_sampler.h"
#include "lockstep/image_folder.h"
#include "lockstep/fingerprint.h"
#include "lockstep/ema.h"
#include "lockstep/optimizer.h"
#include "lockstep/schedule.h"
#include "lockstep/ddp.h"
#include "lockstep/sync_batch_norm.h"
#include "lockstep/program.h"

namespace lockstep {

// "0.1.0"
const char* version();

}  // namespace lockstep
