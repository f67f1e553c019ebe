// What is read of HDF5 files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::conversion {

struct Hdf5Shape {
  std::vector<size_t> sides = {};
  bool is_bytes = false;    // Unsigned numbers of 8 bits.
  bool is_numbers = false;  // Integers or floating point.
};

// A file open for reading. The library behind it knows no threads: only one
// thread at a time may use objects of this class, whichever these are.
//
// Names are paths: "data/demo_0/obs". All functions throw FormatError with the
// file's path for what is not there or cannot be read; the constructor throws
// ConfigError when this program was built without the library.
class Hdf5File {
 public:
  explicit Hdf5File(const std::filesystem::path& path);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  // Names of what is in a group.
  std::vector<std::string> members(const std::string& group) const;

  // No value when the object has no such attribute, or one that is not text.
  std::optional<std::string> text_attribute(const std::string& object,
                                            const std::string& name) const;

  Hdf5Shape shape(const std::string& dataset) const;

  // `count` rows from `first` on; for is_bytes.
  std::vector<uint8_t> read_bytes(const std::string& dataset, size_t first,
                                  size_t count) const;

  // All of it; for is_numbers.
  std::vector<float> read_numbers(const std::string& dataset) const;

 private:
  std::string path_;
  // HDF5's handle; unused in a build without HDF5.
  [[maybe_unused]] int64_t file_ = -1;
};

}  // namespace lockstep::conversion
