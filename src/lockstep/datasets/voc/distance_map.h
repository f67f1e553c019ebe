// How far pixels are from scribbles and from the outlines of labels, as the
// weights of the entropy losses.
//
// Free functions without state: safe to call from several threads at once.
#pragma once

#include <cstdint>
#include <numbers>
#include <vector>

#include "lockstep/data/image.h"
#include "lockstep/data/label_map.h"

namespace lockstep::voc {

// How fast distances count: e and e^6, as in the folders lambd_e and lambd_e6
// of the original's maps. They reach 255 at 155 and at 13 pixels.
constexpr double kScribbleLambda = std::numbers::e;
constexpr double kOutlineLambda = 403.42879349273512;

// For every pixel the square of its exact Euclidean distance to the nearest
// pixel of the mask that is not 0; -1 everywhere when there is none. Takes time
// in proportion to the number of pixels. The mask has one channel.
std::vector<int64_t> squared_distances(const data::Image& mask);

// 255 - min(255, sqrt(lambda) * distance to a scribble), rounded up: 255 on
// scribbles of objects. Those of the background (0) and pixels without a label
// do not count. Without any scribble of an object: 0 everywhere.
data::Image scribble_distance_map(const data::Image& scribbles, double lambda);

// min(255, sqrt(lambda) * distance to the outline of the foreground), rounded
// down. The outline are pixels of objects with one of the background, one
// without a label, or none at all beside, above or below. Without an outline:
// 255 everywhere.
data::Image outline_distance_map(const data::Image& labels, double lambda);

}  // namespace lockstep::voc
