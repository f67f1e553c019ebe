#include "lockstep/cli/inference.h"

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/files.h"
#include "lockstep/engine/file_names.h"
#include "lockstep/run/checkpoints.h"
#include "lockstep/run/run_folder.h"

namespace lockstep::cli {

engine::GoOn shown_as(const char* label, track::Console& console) {
  return [label, &console](int64_t done, int64_t total) {
    console.progress({.label = label, .step = done, .total_steps = total});
    return true;
  };
}

int64_t load_checkpoint(engine::Learner& learner, const CommandLine& line) {
  return run::load_weights(line.checkpoint(), line.average(),
                           {.model = learner.model(),
                            .layout = line.settings().checkpoint,
                            .averaged = learner.parameter_names(),
                            .frozen = learner.info().frozen});
}

void write_output(const std::filesystem::path& path, const std::string& bytes) {
  base::make_output_folder(path.parent_path());
  base::write_file_atomically(path, bytes);
}

void write_files(const std::vector<OutputFile>& files, int64_t step,
                 const std::filesystem::path& folder, track::Console& console) {
  for (const OutputFile& file : files) {
    const auto path = folder / engine::output_name(file.name, step, 0);
    write_output(path, file.bytes);
    console.info(path.string());
  }
}

}  // namespace lockstep::cli
