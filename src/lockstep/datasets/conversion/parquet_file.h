// What is read of parquet files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/formats/action_csv.h"

namespace lockstep::conversion {

// A file open for reading. Each object may be used by one thread at a time.
// All functions throw FormatError with the file's path for what is not there or
// cannot be read; the constructor throws ConfigError when this program was
// built without the library.
class ParquetFile {
 public:
  explicit ParquetFile(const std::filesystem::path& path);
  ~ParquetFile();
  ParquetFile(const ParquetFile&) = delete;
  ParquetFile& operator=(const ParquetFile&) = delete;

  const std::vector<std::string>& columns() const;
  size_t num_rows() const;

  // One number per row, of any type of numbers.
  std::vector<double> numbers(const std::string& column) const;

  // One text per row.
  std::vector<std::string> texts(const std::string& column) const;

  // A list of texts per row.
  std::vector<std::vector<std::string>> text_lists(
      const std::string& column) const;

  // A list of seven numbers per row.
  std::vector<formats::Action> actions(const std::string& column) const;

  struct Rows {
    size_t first = 0;
    size_t count = 0;
  };

  // Calls take(i, bytes) for the i-th of the columns, for every row in order:
  // bytes, or a table of {bytes, path}. Some rows at a time are in memory. Rows
  // behind those of the last call are read from where it ended.
  using TakeBytes = std::function<void(size_t column, std::string_view bytes)>;
  void images(std::span<const std::string> columns, const Rows& rows,
              const TakeBytes& take);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::conversion
