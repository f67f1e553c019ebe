// Names of functions in programs and libraries that do not export them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep::launch {

struct SymbolPlace {
  std::string name;     // Mangled.
  uint64_t offset = 0;  // From its start.
};

// The function at an address of a 64-bit ELF file, from its symbol table. No
// value for stripped, damaged and other files.
std::optional<SymbolPlace> find_symbol(const std::filesystem::path& file,
                                       uint64_t address);

}  // namespace lockstep::launch
