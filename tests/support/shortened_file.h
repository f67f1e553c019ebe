// A file that another thread shortens while it is read.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "lockstep/base/files.h"
#include "lockstep/error.h"
#include "support/temp_dir.h"

namespace lockstep::testing {

// Calls `read` at least `num_reads` times and until it has once thrown IoError
// or FormatError. Meanwhile a thread shortens the file and writes it whole
// again, in place: a mapped file would end the process by SIGBUS.
inline void read_while_shortened(const TempDir& folder, const std::string& name,
                                 int num_reads,
                                 const std::function<void()>& read) {
  const std::filesystem::path path = folder.path() / name;
  const std::string bytes = base::read_file(path);
  std::atomic<bool> is_done = false;
  std::jthread writer([&] {
    while (!is_done) {
      std::filesystem::resize_file(path, bytes.size() / 3);
      std::filesystem::resize_file(path, bytes.size());
      folder.write(name, bytes);
    }
  });
  int num_refused = 0;
  for (int i = 0; i < num_reads || num_refused == 0; ++i) {
    try {
      read();
    } catch (const IoError&) {
      ++num_refused;
    } catch (const FormatError&) {
      ++num_refused;
    }
  }
  is_done = true;
}

}  // namespace lockstep::testing
