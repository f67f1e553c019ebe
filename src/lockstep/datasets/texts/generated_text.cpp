#include "lockstep/datasets/texts/generated_text.h"

#include <array>
#include <string_view>

#include "lockstep/random.h"

namespace lockstep::texts {
namespace {

using Words = std::array<std::string_view, 12>;

constexpr Words kPeople = {"Anna",  "Ben",   "Carla", "David", "Emma", "Felix",
                           "Grace", "Henry", "Ida",   "Jonas", "Kim",  "Leo"};
constexpr Words kAnimals = {"cat",  "dog",    "horse", "bird", "fox",  "mouse",
                            "bear", "rabbit", "duck",  "goat", "frog", "owl"};
constexpr Words kLooks = {"small", "big",   "old",  "young", "red",  "grey",
                          "happy", "quiet", "slow", "quick", "kind", "hungry"};
constexpr Words kThings = {"apple", "book", "letter", "ball", "lamp",  "hat",
                           "coin",  "cup",  "map",    "key",  "stone", "bell"};
constexpr Words kTook = {"found", "lost",  "took",   "saw",  "hid",  "bought",
                         "sold",  "threw", "wanted", "kept", "gave", "dropped"};
constexpr Words kWent = {"ran",    "walked", "jumped", "slept",
                         "sat",    "played", "waited", "sang",
                         "danced", "stood",  "swam",   "hid"};
constexpr Words kPlaces = {
    "in the garden", "by the river",   "under the tree", "on the hill",
    "at the market", "in the kitchen", "near the lake",  "behind the house",
    "in the forest", "on the bridge",  "at school",      "in the snow"};
constexpr Words kTimes = {"Today",     "Last night",  "In spring",
                          "At noon",   "One day",     "On Monday",
                          "Later",     "In the rain", "Before lunch",
                          "Yesterday", "In winter",   "At dawn"};

class Speaker {
 public:
  explicit Speaker(uint64_t seed) : draw_(seed) {}

  std::string sentence() {
    std::string text;
    const bool has_time = draw_.chance(0.4);
    if (has_time) text = std::string(one(kTimes)) + ", ";
    text += someone();
    text += draw_.chance(0.5) ? " " + std::string(one(kWent))
                              : " " + std::string(one(kTook)) + " " + thing();
    text += " " + std::string(one(kPlaces)) + ".";
    text[0] = static_cast<char>(text[0] >= 'a' ? text[0] - 'a' + 'A' : text[0]);
    return text;
  }

 private:
  std::string_view one(const Words& words) {
    return words[static_cast<size_t>(
        draw_.integer(static_cast<int64_t>(words.size())))];
  }
  std::string someone() {
    if (draw_.chance(0.5)) return std::string(one(kPeople));
    return "the " + std::string(one(kLooks)) + " " + std::string(one(kAnimals));
  }
  std::string thing() {
    return "the " + std::string(one(kLooks)) + " " + std::string(one(kThings));
  }

  RandomStream draw_;
};

}  // namespace

std::string generated_text(const GeneratedTextConfig& config, int64_t index) {
  Speaker speaker(sample_seed(config.seed, /*epoch=*/0, index));
  std::string text = speaker.sentence();
  while (true) {
    const std::string next = " " + speaker.sentence();
    if (text.size() + next.size() > static_cast<size_t>(config.max_bytes)) {
      return text;
    }
    text += next;
  }
}

}  // namespace lockstep::texts
