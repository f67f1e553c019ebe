// Images with label maps, and samples of them for training and evaluation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/data/image.h"
#include "lockstep/dataset.h"
#include "lockstep/datasets/voc/augment.h"

namespace lockstep::voc {

// All of one size. What is not there has no pixels.
struct LabelledImage {
  data::Image image = {};   // Three channels; the others have one.
  data::Image labels = {};  // Scribbles, or the truth; kNoLabel: none.
  data::Image pseudo = {};
  data::Image scribble_distances = {};
  data::Image outline_distances = {};
};

// Numbered images; safe to use from several threads at once.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual int64_t size() const = 0;
  // The image's file name, without an ending.
  virtual std::string name(int64_t index) const = 0;
  virtual LabelledImage read(int64_t index) const = 0;
};

// Samples to train on, all uint8: image [3, S, S]; labels, pseudo labels
// (255 where there are none), distances from scribbles and from outlines (0
// where there are none) [S, S]. Changed at random.
class ScribbleSamples final : public Dataset {
 public:
  ScribbleSamples(std::shared_ptr<const ImageSource> source,
                  const AugmentConfig& config);

  int64_t size() const override { return source_->size(); }
  Sample get(int64_t index, uint64_t seed) const override;

 private:
  std::shared_ptr<const ImageSource> source_;
  AugmentConfig config_;
};

// The middle of each image and of its truth: uint8 [3, S, S] and [S, S].
class CentreSamples final : public Dataset {
 public:
  CentreSamples(std::shared_ptr<const ImageSource> source, int64_t side);

  int64_t size() const override { return source_->size(); }
  Sample get(int64_t index, uint64_t seed) const override;

 private:
  std::shared_ptr<const ImageSource> source_;
  int64_t side_;
};

// Whole images: uint8 [3, H, W], truth uint8 [H, W], int64 [2] = {H, W}. A
// batch has the size of its largest image: others are followed by 0, their
// truth by kNoLabel.
class WholeSamples final : public Dataset {
 public:
  explicit WholeSamples(std::shared_ptr<const ImageSource> source);

  int64_t size() const override { return source_->size(); }
  Sample get(int64_t index, uint64_t seed) const override;
  Sample collate(std::vector<Sample> samples) const override;

  std::string name(int64_t index) const { return source_->name(index); }

 private:
  std::shared_ptr<const ImageSource> source_;
};

}  // namespace lockstep::voc
