// An image or text of a run as a file that Weights & Biases shows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/track/tracker.h"
#include "lockstep/track/wandb_records.h"

namespace lockstep::track {

// Both write a file below `files` and return the items that stand for it in the
// record of the step, under the title. Throw IoError, and FormatError for an
// image that is not a PNG file.
std::vector<WandbItem> write_image(const std::filesystem::path& files,
                                   int64_t step, const ImageRecord& image);
// Weights & Biases has no panel for plain texts: it becomes a page.
std::vector<WandbItem> write_text(const std::filesystem::path& files,
                                  int64_t step, const TextNote& note);

}  // namespace lockstep::track
