#include "lockstep/datasets/episodes/prepare_program.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "lockstep/base/files.h"
#include "lockstep/error.h"

namespace lockstep::episodes {
namespace {

constexpr const char* kPrepareName = "lockstep-prepare";
constexpr const char* kVariable = "LOCKSTEP_PREPARE";

// A path, or a name to look for on PATH.
std::string find_program() {
  if (const char* named = std::getenv(kVariable)) return named;
  std::error_code problem;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", problem);
  const auto beside = self.parent_path() / kPrepareName;
  if (!problem && std::filesystem::exists(beside, problem)) return beside;
  return kPrepareName;
}

}  // namespace

bool is_for_prepare_program(const std::vector<std::string>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const std::string& word) {
                       const std::string name = word.substr(0, word.find('='));
                       return name == "--from" || name == "--input";
                     });
}

void become_prepare_program(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {find_program(), "atlas"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  throw ConfigError("cannot start '" + words[0] + "': " + base::errno_text() +
                    "; it lies beside lockstep-worker after ./lockstep.sh "
                    "build, or name it in " +
                    kVariable);
}

}  // namespace lockstep::episodes
