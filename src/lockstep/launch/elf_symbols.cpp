#include "lockstep/launch/elf_symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lockstep/base/files.h"

namespace lockstep::launch {
namespace {

constexpr uint64_t kMaxNameBytes = 4096;

// Bytes of a regular file; none beyond its end.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& file)
      : fd_(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat info{};
    if (fd_ && fstat(fd_.get(), &info) == 0 && S_ISREG(info.st_mode)) {
      size_ = static_cast<uint64_t>(info.st_size);
    }
  }

  template <typename Item>
  std::vector<Item> read(uint64_t offset, uint64_t bytes) const {
    if (offset >= size_) return {};
    std::vector<Item> items(std::min(bytes, size_ - offset) / sizeof(Item));
    auto* begin = reinterpret_cast<char*>(items.data());
    size_t done = 0;
    while (done < items.size() * sizeof(Item)) {
      const ssize_t count =
          pread(fd_.get(), begin + done, items.size() * sizeof(Item) - done,
                static_cast<off_t>(offset + done));
      if (count <= 0) break;
      done += static_cast<size_t>(count);
    }
    items.resize(done / sizeof(Item));
    return items;
  }

 private:
  base::FileDescriptor fd_;
  uint64_t size_ = 0;
};

std::vector<Elf64_Shdr> read_sections(const Reader& reader) {
  const auto headers = reader.read<Elf64_Ehdr>(0, sizeof(Elf64_Ehdr));
  if (headers.empty()) return {};
  const Elf64_Ehdr& header = headers[0];
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr)) {
    return {};
  }
  return reader.read<Elf64_Shdr>(header.e_shoff,
                                 header.e_shnum * sizeof(Elf64_Shdr));
}

}  // namespace

std::optional<SymbolPlace> find_symbol(const std::filesystem::path& file,
                                       uint64_t address) {
  const Reader reader(file);
  const auto sections = read_sections(reader);
  for (const Elf64_Shdr& table : sections) {
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= sections.size()) {
      continue;
    }
    const Elf64_Shdr& names = sections[table.sh_link];
    for (const Elf64_Sym& symbol :
         reader.read<Elf64_Sym>(table.sh_offset, table.sh_size)) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
          address < symbol.st_value ||
          address - symbol.st_value >= symbol.st_size ||
          symbol.st_name >= names.sh_size) {
        continue;
      }
      auto name = reader.read<char>(
          names.sh_offset + symbol.st_name,
          std::min(kMaxNameBytes, names.sh_size - symbol.st_name));
      name.push_back('\0');
      return SymbolPlace{name.data(), address - symbol.st_value};
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::launch
