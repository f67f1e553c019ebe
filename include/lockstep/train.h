// All that a recipe of your own needs, in one include.
#pragma once

#include "lockstep/dataset.h"
#include "lockstep/error.h"
#include "lockstep/image_folder.h"
#include "lockstep/options.h"
#include "lockstep/program.h"
#include "lockstep/random.h"
#include "lockstep/recipe.h"
#include "lockstep/sampler.h"
