#include "lockstep/datasets/voc/generated.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "lockstep/datasets/drawing.h"
#include "lockstep/datasets/voc/distance_map.h"
#include "lockstep/random.h"

namespace lockstep::voc {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;
// Sets with other seeds have no image in common.
constexpr uint64_t kTrainSeed = 1;
constexpr uint64_t kTruthSeed = 2;

struct ImagePoint {
  double x = 0;
  double y = 0;
};

struct Thing {
  int label = 1;
  ImagePoint centre = {};
  double radius = 10;
  double cosine = 1;  // Cosine of its tilt.
  double sine = 0;
  datasets::Colour light = {};
  datasets::Colour dark = {};
};

struct GeneratedScene {
  data::ImageSize size = {};
  uint64_t seed = 0;
  std::vector<Thing> things = {};  // Later ones hide earlier ones.
  datasets::Colour ground = {};
  datasets::Colour ground_spots = {};
};

// 0 to 1 by place: noise that does not depend on the order of pixels.
double noise(uint64_t seed, int64_t x, int64_t y) {
  const uint64_t place = static_cast<uint64_t>(x * 7919 + y * 104'729);
  return static_cast<double>(mix_bits(seed ^ mix_bits(place)) >> 40) /
         double(1 << 24);
}

// 0 to 1, the same over about `grain` pixels.
double smooth_noise(uint64_t seed, ImagePoint at, double grain) {
  const double x = at.x / grain;
  const double y = at.y / grain;
  const auto left = static_cast<int64_t>(std::floor(x));
  const auto top = static_cast<int64_t>(std::floor(y));
  const double across = x - static_cast<double>(left);
  const double down = y - static_cast<double>(top);
  const auto row = [&](int64_t line) {
    return std::lerp(noise(seed, left, line), noise(seed, left + 1, line),
                     across);
  };
  return std::lerp(row(top), row(top + 1), down);
}

// hue 0 to 1
datasets::Colour cosine_colour(double hue, double saturation, double value) {
  datasets::Colour colour;
  for (size_t i = 0; i < 3; ++i) {
    const double angle = kTurn * (hue - static_cast<double>(i) / 3);
    const double part = 0.5 + 0.5 * std::cos(angle);
    colour[i] = 255 * value * (1 - saturation * (1 - part));
  }
  return colour;
}

// In the thing's own directions, in parts of its radius.
ImagePoint seen_from(const Thing& thing, ImagePoint at) {
  const double x = (at.x - thing.centre.x) / thing.radius;
  const double y = (at.y - thing.centre.y) / thing.radius;
  return {.x = x * thing.cosine + y * thing.sine,
          .y = y * thing.cosine - x * thing.sine};
}

bool covers(const Thing& thing, ImagePoint at) {
  const auto [x, y] = seen_from(thing, at);
  switch (thing.label) {
    case 1: return std::hypot(x, y) < 0.95;
    case 2: return std::max(std::abs(x), std::abs(y)) < 0.8;
    case 3: return y < 0.6 && std::abs(x) < 0.6 * (y + 1);
    case 4: return std::hypot(x, 2 * y) < 1.1;
    default:
      return std::max(std::abs(x), std::abs(y)) < 0.95 &&
             std::min(std::abs(x), std::abs(y)) < 0.4;
  }
}

// 0: dark; 1: light.
double pattern(const Thing& thing, ImagePoint at) {
  const auto [x, y] = seen_from(thing, at);
  switch (thing.label) {
    case 1: return 0.5 + 0.5 * std::cos(12 * std::hypot(x, y));
    case 2: return std::sin(8 * x) > 0 ? 1 : 0;
    case 3: return std::sin(9 * x) * std::sin(9 * y) > 0 ? 1 : 0;
    case 4: return 0.5 + 0.5 * y;
    default: return std::sin(10 * x) + std::sin(10 * y) > 0.9 ? 1 : 0.2;
  }
}

// Null for the background.
const Thing* thing_at(const GeneratedScene& scene, ImagePoint at) {
  const auto found =
      std::find_if(scene.things.rbegin(), scene.things.rend(),
                   [at](const Thing& thing) { return covers(thing, at); });
  return found == scene.things.rend() ? nullptr : &*found;
}

Thing draw_thing(RandomStream& random, data::ImageSize size) {
  Thing thing{.label =
                  1 + static_cast<int>(random.integer(kGeneratedClasses - 1))};
  thing.radius = datasets::draw_between(random, 13, 21);
  thing.centre = {
      .x = datasets::draw_between(random, 0.6 * thing.radius,
                                  size.width - 0.6 * thing.radius),
      .y = datasets::draw_between(random, 0.6 * thing.radius,
                                  size.height - 0.6 * thing.radius)};
  const double tilt = datasets::draw_between(random, -0.5, 0.5);
  thing.cosine = std::cos(tilt);
  thing.sine = std::sin(tilt);
  const double hue =
      0.2 * thing.label + datasets::draw_between(random, -0.04, 0.04);
  thing.light =
      cosine_colour(hue, 0.75, datasets::draw_between(random, 0.85, 1));
  thing.dark =
      cosine_colour(hue, 0.9, datasets::draw_between(random, 0.5, 0.65));
  return thing;
}

GeneratedScene draw_scene(uint64_t seed) {
  RandomStream random(seed);
  GeneratedScene scene{
      .size = {.width = 88 + static_cast<int>(random.integer(17)),
               .height = 72 + static_cast<int>(random.integer(17))},
      .seed = seed};
  const double hue = random.uniform();
  const double value = datasets::draw_between(random, 0.25, 0.8);
  scene.ground = cosine_colour(hue, 0.2, value);
  scene.ground_spots = cosine_colour(hue + 0.1, 0.25, value + 0.2);
  const int64_t num_things = 1 + random.integer(3);
  for (int64_t i = 0; i < num_things; ++i) {
    scene.things.push_back(draw_thing(random, scene.size));
  }
  return scene;
}

datasets::Colour colour_at(const GeneratedScene& scene, ImagePoint at) {
  const Thing* thing = thing_at(scene, at);
  const double light =
      thing != nullptr ? pattern(*thing, at) : smooth_noise(scene.seed, at, 6);
  const datasets::Colour& low = thing != nullptr ? thing->dark : scene.ground;
  const datasets::Colour& high =
      thing != nullptr ? thing->light : scene.ground_spots;
  datasets::Colour colour;
  for (size_t i = 0; i < 3; ++i) {
    colour[i] = std::lerp(low[i], high[i], light);
  }
  return colour;
}

data::Image paint(const GeneratedScene& scene) {
  constexpr double kGrain = 24;  // Levels of noise.
  data::Image image = data::make_image(scene.size.width, scene.size.height, 3);
  uint8_t* to = image.pixels.data();
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      const ImagePoint at{.x = x + 0.5, .y = y + 0.5};
      const double grain = kGrain * (noise(scene.seed + 1, x, y) - 0.5);
      for (const double level : colour_at(scene, at)) {
        *to++ = static_cast<uint8_t>(std::clamp(level + grain, 0.0, 255.0));
      }
    }
  }
  return image;
}

// Every pixel takes the label at its place, or `away` pixels or less from it.
data::Image labels_of(const GeneratedScene& scene, double away) {
  data::Image labels = data::make_image(scene.size.width, scene.size.height, 1);
  for (int y = 0; y < labels.height; ++y) {
    for (int x = 0; x < labels.width; ++x) {
      ImagePoint at{.x = x + 0.5, .y = y + 0.5};
      if (away > 0) {
        const ImagePoint shift{.x = smooth_noise(scene.seed + 2, at, 9),
                               .y = smooth_noise(scene.seed + 3, at, 9)};
        at.x += away * (2 * shift.x - 1);
        at.y += away * (2 * shift.y - 1);
      }
      const Thing* thing = thing_at(scene, at);
      labels.row(y)[x] =
          thing != nullptr ? static_cast<uint8_t>(thing->label) : 0;
    }
  }
  return labels;
}

struct Stroke {
  const Thing* thing = nullptr;  // Null: in the background.
  ImagePoint middle = {};
  double direction = 0;
  double length = 10;
  double bend = 1;  // Pixels to the side.
};

// A curve two pixels wide that stays on its thing.
void draw_stroke(const GeneratedScene& scene, const Stroke& stroke,
                 data::Image& scribbles) {
  const uint8_t label =
      stroke.thing != nullptr ? static_cast<uint8_t>(stroke.thing->label) : 0;
  const double cosine = std::cos(stroke.direction);
  const double sine = std::sin(stroke.direction);
  for (double along = -0.5; along <= 0.5; along += 0.25 / stroke.length) {
    for (const double width : {-0.5, 0.5}) {
      const double ahead = along * stroke.length;
      const double aside = width + stroke.bend * std::sin(kTurn * along);
      const ImagePoint at{.x = stroke.middle.x + ahead * cosine - aside * sine,
                          .y = stroke.middle.y + ahead * sine + aside * cosine};
      const int x = static_cast<int>(std::floor(at.x));
      const int y = static_cast<int>(std::floor(at.y));
      const bool is_inside =
          x >= 0 && y >= 0 && x < scribbles.width && y < scribbles.height;
      // The pixel's middle decides, as it does for the truth.
      if (is_inside &&
          thing_at(scene, {.x = x + 0.5, .y = y + 0.5}) == stroke.thing) {
        scribbles.row(y)[x] = label;
      }
    }
  }
}

data::Image scribbles_of(const GeneratedScene& scene) {
  RandomStream random(scene.seed, 1);
  data::Image scribbles =
      data::make_image(scene.size.width, scene.size.height, 1);
  std::fill(scribbles.pixels.begin(), scribbles.pixels.end(), data::kNoLabel);
  for (const Thing& thing : scene.things) {
    const bool is_marked = &thing == &scene.things.back() || random.chance(0.8);
    Stroke stroke{.thing = &thing, .middle = thing.centre};
    stroke.direction = datasets::draw_between(random, 0, kTurn);
    stroke.length = thing.radius * datasets::draw_between(random, 0.9, 1.4);
    stroke.bend = datasets::draw_between(random, -2, 2);
    if (is_marked) draw_stroke(scene, stroke, scribbles);
  }
  for (int i = 0; i < 2; ++i) {
    Stroke stroke{.middle = {.x = scene.size.width * random.uniform(),
                             .y = scene.size.height * random.uniform()}};
    stroke.direction = datasets::draw_between(random, 0, kTurn);
    stroke.length = datasets::draw_between(random, 40, 70);
    stroke.bend = datasets::draw_between(random, -8, 8);
    draw_stroke(scene, stroke, scribbles);
  }
  return scribbles;
}

class GeneratedScribbles final : public ImageSource {
 public:
  explicit GeneratedScribbles(ScribbleMode mode) : mode_(mode) {}

  int64_t size() const override { return kGeneratedToTrain; }
  std::string name(int64_t index) const override {
    return fmt::format("train_{:04}", index);
  }

  LabelledImage read(int64_t index) const override {
    constexpr double kMistake = 4;  // Pixels.
    const GeneratedScene scene = draw_scene(sample_seed(kTrainSeed, 0, index));
    LabelledImage item{.image = paint(scene)};
    data::Image pseudo = labels_of(scene, kMistake);
    item.labels = has_scribbles(mode_) ? scribbles_of(scene) : pseudo;
    if (has_scribble_distances(mode_)) {
      item.scribble_distances =
          scribble_distance_map(item.labels, kScribbleLambda);
    }
    if (has_outline_distances(mode_)) {
      item.outline_distances = outline_distance_map(pseudo, kOutlineLambda);
    }
    if (has_scribbles(mode_) && has_pseudo(mode_)) {
      item.pseudo = std::move(pseudo);
    }
    return item;
  }

 private:
  ScribbleMode mode_;
};

class GeneratedTruths final : public ImageSource {
 public:
  int64_t size() const override { return kGeneratedToValidate; }
  std::string name(int64_t index) const override {
    return fmt::format("val_{:04}", index);
  }

  LabelledImage read(int64_t index) const override {
    const GeneratedScene scene = draw_scene(sample_seed(kTruthSeed, 0, index));
    return {.image = paint(scene), .labels = labels_of(scene, 0)};
  }
};

}  // namespace

std::shared_ptr<const ImageSource> generated_scribbles(ScribbleMode mode) {
  return std::make_shared<GeneratedScribbles>(mode);
}

std::shared_ptr<const ImageSource> generated_truths() {
  return std::make_shared<GeneratedTruths>();
}

}  // namespace lockstep::voc
