// The ability to generate images that are scored (FID) against real ones.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "lockstep/dataset.h"
#include "lockstep/export.h"
#include "lockstep/random.h"

namespace lockstep {

struct Settings;

// Adds the --fid_... flags. Called by describe() of a recipe whose tasks have
// this ability.
LOCKSTEP_EXPORT void describe_score(Settings& settings);

// A task implements it in addition to Task.
class LOCKSTEP_EXPORT ImageScoring {
 public:
  virtual ~ImageScoring() = default;

  // Images to generate for a score; at least 2.
  virtual int64_t num_images() const = 0;

  // The real images: samples begin with uint8 [3, S, S], not augmented. Null if
  // no data were opened, as for Purpose::kSample.
  virtual std::shared_ptr<const Dataset> reference() const = 0;

  // uint8 [B, 3, S, S], one image per item. An image depends only on its number
  // and its draws. The model is in eval mode, without gradients.
  virtual at::Tensor generate(std::span<const int64_t> items,
                              SampleRandom& random) = 0;
};

}  // namespace lockstep
