// A program's commands and flags, from which man pages and completions are
// made.
#pragma once

#include <string>
#include <vector>

namespace lockstep::manual {

struct Flag {
  std::string name = {};        // "save_dir"
  char short_name = '\0';       // 'r' for -r
  std::string value = {};       // "TEXT"; empty: it takes none
  bool has_negation = false;    // --no_name turns it off
  std::string help = {};        // What it means.
  std::string help_notes = {};  // Default and limits; may be empty.
  std::vector<std::string> choices = {};
};

struct Section {
  std::string title = {};
  std::vector<Flag> flags = {};
};

struct RecipeFlags {
  std::string name = {};
  std::string summary = {};
  std::vector<Section> sections = {};  // Its own settings.
};

struct Command {
  std::string name = {};   // "train"
  std::string usage = {};  // "RECIPE [flags]"
  std::string summary = {};
  std::vector<Section> sections = {};     // For every recipe.
  std::vector<RecipeFlags> recipes = {};  // Empty: it takes no recipe.
};

struct Program {
  std::string name = {};  // "lockstep"
  std::string version = {};
  std::string summary = {};
  std::vector<Command> commands = {};
};

}  // namespace lockstep::manual
