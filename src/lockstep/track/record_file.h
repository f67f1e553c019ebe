// A file that grows by whole records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "lockstep/base/files.h"

namespace lockstep::track {

// A record is in the file whole or not at all: what a full disk cut off is
// taken away again, so that later records follow the last whole one. Not
// thread-safe. All functions throw IoError.
class RecordFile {
 public:
  enum class Open {
    kNew,    // There must be no such file.
    kAtEnd,  // Made when there is none.
  };

  RecordFile(std::filesystem::path path, Open how);

  void append(std::string_view record) { replace_end(0, record); }

  // Puts the record in the place of the last `count` bytes; on failure those
  // stay.
  void replace_end(size_t count, std::string_view record);

  const std::filesystem::path& path() const { return path_; }
  int64_t size() const { return end_; }

 private:
  void write_at(int64_t offset, std::string_view record);
  [[noreturn]] void fail(std::string_view what) const;

  std::filesystem::path path_;
  base::FileDescriptor file_;
  int64_t end_ = 0;  // Behind the last whole record.
};

}  // namespace lockstep::track
