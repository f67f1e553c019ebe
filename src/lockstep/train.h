// All that a recipe of your own needs, in one include.
#pragma once

#include "lockstep/base/error.h"
#include "lockstep/config/options.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/image_folder.h"
#include "lockstep/program.h"
#include "lockstep/tensor/random_stream.h"
#include "lockstep/tensor/sample_random.h"
#include "lockstep/tensor/seed.h"
#include "lockstep/train/commands.h"
#include "lockstep/train/recipe.h"
#include "lockstep/train/sampler.h"
