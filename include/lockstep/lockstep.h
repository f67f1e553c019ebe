// Everything for a custom training loop, in one include; lockstep/train.h is
// for recipes.
#pragma once

#include "lockstep/checkpoint.h"
#include "lockstep/ddp.h"
#include "lockstep/distributed_sampler.h"
#include "lockstep/ema.h"
#include "lockstep/error.h"
#include "lockstep/export.h"
#include "lockstep/fingerprint.h"
#include "lockstep/fused.h"
#include "lockstep/image_folder.h"
#include "lockstep/loader.h"
#include "lockstep/optimizer.h"
#include "lockstep/profiler.h"
#include "lockstep/program.h"
#include "lockstep/schedule.h"
#include "lockstep/step_graph.h"
#include "lockstep/step_loader.h"
#include "lockstep/sync_batch_norm.h"
#include "lockstep/world.h"

namespace lockstep {

// "0.1.0"
LOCKSTEP_EXPORT const char* version();

}  // namespace lockstep
