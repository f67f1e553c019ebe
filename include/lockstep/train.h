// All that a recipe of your own needs, in one include.
#pragma once

#include "lockstep/error.h"
#include "lockstep/cli/commands.h"
#include "lockstep/options.h"
#include "lockstep/dataset.h"
#include "lockstep/image_folder.h"
#include "lockstep/recipe.h"
#include "lockstep/sampler.h"
#include "lockstep/program.h"
#include "lockstep/random_stream.h"
#include "lockstep/sample_random.h"
#include "lockstep/seed.h"
