// Saving beside training.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/checkpoint_tree.h"

namespace lockstep {

// Called on the writing thread, after a file was written or could not be.
struct BackgroundSaverConfig {
  std::function<void(const std::filesystem::path& path)> on_saved = {};
  std::function<void(const std::filesystem::path& path,
                     const std::string& error)>
      on_error = {};
};

// Copies what it is given and writes the copy on a thread of its own, one file
// at a time. The memory of the copy stays for the next one. All functions
// belong to one thread.
class BackgroundSaver {
 public:
  explicit BackgroundSaver(BackgroundSaverConfig config = {});
  ~BackgroundSaver();  // As wait().
  BackgroundSaver(const BackgroundSaver&) = delete;
  BackgroundSaver& operator=(const BackgroundSaver&) = delete;

  // Waits for the file before, copies all tensors to host memory (pinned, from
  // a GPU) and returns: from then on the caller may change them. Writes as
  // save_checkpoint(). Throws ConfigError for tensors that cannot be saved;
  // errors of writing are kept.
  void save(const std::filesystem::path& path, const Tree& tree);

  // Blocks until nothing is being written.
  void wait();

  // The first error since the last call, with its path.
  std::optional<std::string> take_error();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
