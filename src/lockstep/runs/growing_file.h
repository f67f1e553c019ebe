// Whole lines of a file that another process appends to.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lockstep/runs/folder_tree.h"

namespace lockstep::runs {

class GrowingFile {
 public:
  explicit GrowingFile(std::string path) : path_(std::move(path)) {}

  struct Handlers {
    // The file is another one than before, or became shorter: what was read no
    // longer counts.
    std::function<void()> restart = {};
    // Whole lines, each with its end.
    std::function<void(std::string_view)> lines = {};
  };

  // Reads what is new. True when there was anything. A last line without an end
  // waits for it; lines of more than a megabyte are skipped.
  bool read(const FolderTree& tree, const Handlers& handlers);

  int64_t modified() const { return facts_.modified; }

 private:
  void take(std::string_view bytes, const Handlers& handlers);

  std::string path_;
  FileFacts facts_ = {};
  int64_t offset_ = 0;
  std::string rest_ = {};  // The beginning of a line.
  bool is_skipping_ = false;
};

}  // namespace lockstep::runs
