// A small description.
#pragma once

#include "lockstep/manual/description.h"

namespace lockstep::testing {

inline manual::Program sample_program() {
  return {
      .name = "lockstep",
      .version = "1.2",
      .summary = "trains",
      .commands = {
          {.name = "train",
           .usage = "RECIPE [flags]",
           .summary = "train a recipe",
           .sections = {{.title = "Launching",
                         .flags = {{.name = "log-dir",
                                    .value = "FOLDER",
                                    .help = "it's a folder"}}},
                        {.title = "Run",
                         .flags = {{.name = "device",
                                    .value = "TEXT",
                                    .help = ".where",
                                    .help_notes = "default: auto",
                                    .choices = {"cpu", "cuda"}}}}},
           .recipes = {{.name = "tiny",
                        .summary = "a first look",
                        .sections = {{.title = "Tiny",
                                      .flags = {{.name = "augment",
                                                 .has_negation = true,
                                                 .help = "shift a\\b"}}}}}}},
          {.name = "version", .summary = "print the version"}}};
}

}  // namespace lockstep::testing
