// What the tasks of dit and jit on images share: their data sets, and that
// they are sampled and scored.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/datasets/images/image_sets.h"
#include "lockstep/image_scoring.h"
#include "lockstep/sampling.h"
#include "lockstep/task.h"

namespace lockstep::recipes {

class ImageTask : public Task, public Sampling, public ImageScoring {
 public:
  DataSets data() const override {
    return {.train = sets_.train, .validation = sets_.validation};
  }
  bool samples_averages() const override { return true; }
  int64_t num_images() const override { return num_scored_; }
  std::shared_ptr<const Dataset> reference() const override {
    return sets_.reference;
  }

 protected:
  // By label; none without data sets.
  const std::vector<std::string>& class_names() const {
    return sets_.class_names;
  }

  // Without data sets it can only sample.
  ImageTask(images::ImageSets sets, int64_t num_scored)
      : sets_(std::move(sets)), num_scored_(num_scored) {}

 private:
  images::ImageSets sets_;
  int64_t num_scored_;
};

}  // namespace lockstep::recipes
