#include "lockstep/base/status_view.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "lockstep/base/files.h"
#include "lockstep/base/status_memory.h"

namespace lockstep::base {
namespace {

namespace fs = std::filesystem;

struct alignas(StatusPage) PageBytes {
  std::array<std::byte, kStatusMemoryBytes> bytes{};
};

std::optional<PageView> read_page(const fs::path& descriptor) {
  std::error_code error;
  const std::string target = fs::read_symlink(descriptor, error).string();
  if (!target.starts_with(std::string("/memfd:") + kStatusMemoryName)) {
    return std::nullopt;
  }
  const FileDescriptor file(open(descriptor.c_str(), O_RDONLY | O_CLOEXEC));
  PageBytes page;
  if (!file || pread(file.get(), page.bytes.data(), page.bytes.size(), 0) !=
                   ssize_t{kStatusMemoryBytes}) {
    return std::nullopt;
  }
  const auto rank =
      read_status_page(*reinterpret_cast<StatusPage*>(page.bytes.data()));
  if (!rank) return std::nullopt;
  return PageView{
      .rank = *rank,
      .training = read_training_page(*reinterpret_cast<TrainingPage*>(
          page.bytes.data() + TrainingPage::kOffset))};
}

}  // namespace

std::vector<PageView> read_status_pages(int pid) {
  std::vector<PageView> pages;
  std::error_code error;
  const fs::path folder = "/proc/" + std::to_string(pid) + "/fd";
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (auto page = read_page(entry->path())) pages.push_back(*page);
  }
  std::sort(pages.begin(), pages.end(),
            [](const PageView& a, const PageView& b) {
              return a.rank.rank < b.rank.rank;
            });
  return pages;
}

}  // namespace lockstep::base
