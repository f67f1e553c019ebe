#include "lockstep/datasets/conversion/episode_name.h"

#include <fmt/format.h>

#include <cstdint>

namespace lockstep::conversion {
namespace {

// FNV-1a, its bits spread by the finaliser of splitmix64.
uint64_t stable_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  hash = (hash ^ (hash >> 30U)) * 0xbf58476d1ce4e5b9U;
  hash = (hash ^ (hash >> 27U)) * 0x94d049bb133111ebU;
  return hash ^ (hash >> 31U);
}

bool is_usual(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_' || letter == '-' ||
         letter == '.';
}

}  // namespace

std::string episode_name(std::string_view text) {
  constexpr size_t kMost = 180;
  std::string name(text.substr(0, kMost));
  bool is_changed = text.size() > kMost;
  for (char& letter : name) {
    if (is_usual(letter)) continue;
    letter = '_';
    is_changed = true;
  }
  if (is_changed) name += fmt::format("-{:016x}", stable_hash(text));
  return "episode_" + name;
}

double stable_fraction(std::string_view text) {
  return static_cast<double>(stable_hash(text) >> 11U) * 0x1p-53;
}

}  // namespace lockstep::conversion
