// The error file of torchelastic: in it a worker reports to its launcher why it
// failed.
//
// A worker started by `lockstep run` or by torchrun finds the path in
// TORCHELASTIC_ERROR_FILE; both launchers show the message in their failure
// report.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::base {

struct ErrorReport {
  std::string message;       // "TimeoutError: all_reduce #12 ..."
  std::string callstack;     // May be empty.
  int64_t unix_seconds = 0;  // When it happened.
};

// Never throws: the error being reported matters more than a failing report.
void write_error_file(const std::filesystem::path& path,
                      const ErrorReport& report) noexcept;

// Reads what C++ and Python workers write; no value when there is no usable
// file.
std::optional<ErrorReport> read_error_file(const std::filesystem::path& path);

// Writes the file named by TORCHELASTIC_ERROR_FILE, if the variable is set.
void report_to_launcher(const std::exception& error) noexcept;

}  // namespace lockstep::base
