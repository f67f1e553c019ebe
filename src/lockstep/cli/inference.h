// Functions shared by eval and sample.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/cli/command_line.h"
#include "lockstep/engine/evaluation.h"
#include "lockstep/engine/learner.h"
#include "lockstep/output_file.h"
#include "lockstep/track/console.h"

namespace lockstep::cli {

// Shows progress; a signal ends the process as usual.
engine::GoOn shown_as(const char* label, track::Console& console);

// Loads the weights of --checkpoint, or the average of --ema. Returns the
// checkpoint's step.
int64_t load_checkpoint(engine::Learner& learner, const CommandLine& line);

// Creates the folder.
void write_output(const std::filesystem::path& path, const std::string& bytes);

// Writes the files and logs their paths.
void write_files(const std::vector<OutputFile>& files, int64_t step,
                 const std::filesystem::path& folder, track::Console& console);

}  // namespace lockstep::cli
