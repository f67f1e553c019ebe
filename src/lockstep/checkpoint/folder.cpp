#include "lockstep/checkpoint/folder.h"

#include <fnmatch.h>

#include <algorithm>
#include <tuple>

#include "lockstep/base/strings.h"
#include "lockstep/checkpoint.h"
#include "lockstep/error.h"
#include "lockstep/formats/torch_file.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

bool matches(const CheckpointQuery& query, const fs::path& path) {
  const std::string name = path.filename().string();
  return std::ranges::any_of(query.patterns, [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD | FNM_EXTMATCH) ==
           0;
  });
}

int64_t read_step(const fs::path& path, const std::string& key) {
  const formats::Value value =
      formats::read_torch_file(path, formats::TorchFileCheck::kStructure);
  BasicView<formats::TensorRecord> place(value);
  for (const std::string& part : base::split(key, '.')) place = place.at(part);
  return place.as_int();
}

void skip(const OnSkipped& on_skipped, const fs::path& path,
          const Error& error) {
  if (on_skipped) on_skipped(path, error.what());
}

std::optional<CheckpointFile> first_valid(
    const std::vector<CheckpointFile>& files) {
  for (const CheckpointFile& file : files) {
    try {
      formats::read_torch_file(file.path, formats::TorchFileCheck::kAll);
      return file;
    } catch (const Error&) {
      // An older one may be sound.
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<CheckpointFile> list_checkpoints(const CheckpointQuery& query,
                                             const OnSkipped& on_skipped) {
  std::vector<CheckpointFile> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(query.folder, error)) {
    if (!entry.is_regular_file(error) || !matches(query, entry.path())) {
      continue;
    }
    try {
      files.push_back({.path = entry.path(),
                       .step = read_step(entry.path(), query.step_key)});
    } catch (const Error& problem) {
      skip(on_skipped, entry.path(), problem);
    }
  }
  std::ranges::sort(files, std::greater{}, [](const CheckpointFile& file) {
    return std::pair(file.step, file.path);
  });
  return files;
}

std::optional<LoadedCheckpoint> load_latest(const CheckpointQuery& query,
                                            const OnSkipped& on_skipped) {
  for (const CheckpointFile& file : list_checkpoints(query, on_skipped)) {
    try {
      return LoadedCheckpoint{.file = file, .tree = load_checkpoint(file.path)};
    } catch (const Error& error) {
      skip(on_skipped, file.path, error);
    }
  }
  return std::nullopt;
}

std::vector<fs::path> remove_old(const CheckpointQuery& query,
                                 const Retention& retention) {
  const auto files = list_checkpoints(query);
  if (files.size() <= retention.keep_last) return {};
  const auto valid = files.front().path == retention.known_sound
                         ? std::optional(files.front())
                         : first_valid(files);
  std::vector<fs::path> removed;
  for (size_t i = retention.keep_last; i < files.size(); ++i) {
    const fs::path& path = files[i].path;
    const bool is_kept =
        (valid && path == valid->path) ||
        std::ranges::find(retention.keep, path.filename().string()) !=
            retention.keep.end();
    if (is_kept) continue;
    std::error_code error;
    if (!fs::remove(path, error) && error) {
      throw IoError("cannot remove the old checkpoint '" + path.string() +
                    "': " + error.message());
    }
    removed.push_back(path);
  }
  return removed;
}

}  // namespace lockstep::checkpoint
