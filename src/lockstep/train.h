// All that a recipe of your own needs, in one include.
#pragma once

#include "lockstep/base/error.h"
#include "lockstep/cli/commands.h"
#include "lockstep/config/options.h"
#include "lockstep/data/dataset.h"
#include "lockstep/datasets/images/image_folder.h"
#include "lockstep/engine/recipe.h"
#include "lockstep/engine/sampler.h"
#include "lockstep/program.h"
#include "lockstep/tensor/random_stream.h"
#include "lockstep/tensor/sample_random.h"
#include "lockstep/tensor/seed.h"
