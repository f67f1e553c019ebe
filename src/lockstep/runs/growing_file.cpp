#include "lockstep/runs/growing_file.h"

#include <unistd.h>

#include <algorithm>

namespace lockstep::runs {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;
constexpr size_t kMostLineBytes = size_t{1} << 20;

}  // namespace

bool GrowingFile::read(const FolderTree& tree, const Handlers& handlers) {
  const auto opened = tree.open_file(path_);
  const FileFacts facts = opened ? opened->facts : FileFacts{};
  const bool is_other = facts.inode != facts_.inode ||
                        facts.device != facts_.device || facts.size < offset_;
  const bool had_any = offset_ > 0;
  facts_ = facts;
  if (is_other) {
    offset_ = 0;
    rest_.clear();
    is_skipping_ = false;
    if (had_any) handlers.restart();
  }
  if (!opened || facts.size == offset_) return is_other && had_any;
  std::string block;
  // Up to the size that was seen: a writer that is faster cannot hold the
  // reader.
  while (offset_ < facts.size) {
    block.resize(
        std::min(kBlockBytes, static_cast<size_t>(facts.size - offset_)));
    const ssize_t got =
        pread(opened->file.get(), block.data(), block.size(), offset_);
    if (got <= 0) break;
    offset_ += got;
    take(std::string_view(block).substr(0, static_cast<size_t>(got)), handlers);
  }
  return true;
}

void GrowingFile::take(std::string_view bytes, const Handlers& handlers) {
  if (is_skipping_ || !rest_.empty()) {
    const size_t end = bytes.find('\n');
    if (!is_skipping_) rest_.append(bytes.substr(0, end));
    if (rest_.size() > kMostLineBytes) {
      is_skipping_ = true;
      rest_.clear();
    }
    if (end == std::string_view::npos) return;
    if (!is_skipping_) handlers.lines(rest_ + "\n");
    is_skipping_ = false;
    rest_.clear();
    bytes.remove_prefix(end + 1);
  }
  const size_t last = bytes.rfind('\n');
  const size_t whole = last == std::string_view::npos ? 0 : last + 1;
  if (whole > 0) handlers.lines(bytes.substr(0, whole));
  rest_ = bytes.substr(whole);
}

}  // namespace lockstep::runs
