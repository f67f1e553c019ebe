// Names of episodes, and which split each belongs to.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::conversion {

// "episode_" and the text, with all letters that are unusual in file names as
// '_', cut to a length that every file system takes; other texts give other
// names all the same.
std::string episode_name(std::string_view text);

// A number from 0 to below 1 that follows from the text alone: the same on
// every machine, in every version, whatever other episodes there are.
double stable_fraction(std::string_view text);

}  // namespace lockstep::conversion
