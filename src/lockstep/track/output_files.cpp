#include "lockstep/track/output_files.h"

#include "lockstep/base/atomic_file.h"

namespace lockstep::track {

OutputFiles::OutputFiles(OutputFilesConfig config)
    : config_(std::move(config)) {}

void OutputFiles::record(const Record& record) {
  for (const NamedFile& file : record.files) {
    const std::filesystem::path path = config_.folder / file.name;
    std::error_code error;  // Writing into a missing folder reports why.
    std::filesystem::create_directories(path.parent_path(), error);
    base::write_file_atomically(path, file.bytes);
    if (config_.on_written) config_.on_written(path);
  }
}

}  // namespace lockstep::track
