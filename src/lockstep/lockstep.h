// What a training loop of your own needs, in one include; lockstep/train.h is
// for recipes.
#pragma once

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/file.h"
#include "lockstep/checkpoint/module_state.h"
#include "lockstep/checkpoint/saver.h"
#include "lockstep/comm/world.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/sampler.h"
#include "lockstep/datasets/images/image_folder.h"
#include "lockstep/kernels/fingerprint.h"
#include "lockstep/optim/ema.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/parallel/ddp.h"
#include "lockstep/parallel/sync_batch_norm.h"
#include "lockstep/program.h"

namespace lockstep {

// "0.1.0"
const char* version();

}  // namespace lockstep
