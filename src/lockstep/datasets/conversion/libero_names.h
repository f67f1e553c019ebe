// Sentences from names in LIBERO's files.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace lockstep::conversion {

// The task as a sentence. From the attribute problem_info, a JSON table with
// "language_instruction"; when that is missing, from the file's name without
// ending: "KITCHEN_SCENE3_turn_on_the_stove_demo" is "turn on the stove".
// Throws FormatError when neither holds one.
std::string libero_sentence(const std::optional<std::string>& problem_info,
                            const std::string& file_stem);

// Which of the names in a group is a camera's image: CAMERA_rgb,
// CAMERA_image, else the only one that contains the camera's name. Throws
// FormatError that lists the names.
std::string find_camera(std::span<const std::string> names,
                        const std::string& camera);

}  // namespace lockstep::conversion
