// Everything for a custom recipe, in one include.
#pragma once

#include "lockstep/dataset.h"
#include "lockstep/error.h"
#include "lockstep/feature_caching.h"
#include "lockstep/image_folder.h"
#include "lockstep/image_scoring.h"
#include "lockstep/options.h"
#include "lockstep/prediction.h"
#include "lockstep/preparation.h"
#include "lockstep/program.h"
#include "lockstep/random.h"
#include "lockstep/recipe.h"
#include "lockstep/reporting.h"
#include "lockstep/sampler.h"
#include "lockstep/sampling.h"
