#include "lockstep/datasets/conversion/episode_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <system_error>
#include <vector>

#include "lockstep/base/files.h"
#include "lockstep/base/new_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/utf8.h"
#include "lockstep/error.h"

namespace lockstep::conversion {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartial = ".partial-";

const char* camera_name(EpisodeCamera camera) {
  return camera == EpisodeCamera::kWorkspace ? "workspace" : "wrist";
}

// ".png" or ".jpg"; empty for other bytes.
std::string_view image_ending(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return ".png";
  if (bytes.starts_with("\xFF\xD8\xFF")) return ".jpg";
  return "";
}

[[noreturn]] void cannot(const char* what, const fs::path& path) {
  throw IoError(fmt::format("cannot {} '{}': {}", what, path.string(),
                            base::errno_text()));
}

// All that was written to the file system of this folder: one call for the
// hundreds of images of an episode.
void sync_file_system(const fs::path& folder) {
  const base::FileDescriptor file(
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file || syncfs(file.get()) != 0) cannot("write", folder);
}

void remove_folder(const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

}  // namespace

EpisodeWriter::EpisodeWriter(const fs::path& place,
                             std::function<void()> on_progress)
    : place_(place), on_progress_(std::move(on_progress)) {
  base::make_output_folder(place.parent_path());
  folder_ = base::make_unique_folder(place.parent_path(),
                                     fmt::format("{}", kPartial));
  try {
    base::make_output_folder(folder_ / "images");
    // mkdtemp() gives it to its owner alone; the rest follows the umask.
    fs::permissions(folder_, fs::status(folder_ / "images").permissions());
  } catch (const std::exception& problem) {
    remove_folder(folder_);
    throw IoError(problem.what());
  }
}

EpisodeWriter::~EpisodeWriter() {
  if (!folder_.empty()) remove_folder(folder_);
}

size_t& EpisodeWriter::num_images(EpisodeCamera camera) {
  return camera == EpisodeCamera::kWorkspace ? num_workspace_ : num_wrist_;
}

void EpisodeWriter::add_image(EpisodeCamera camera, std::string_view bytes) {
  size_t& number = num_images(camera);
  const std::string_view ending = image_ending(bytes);
  if (ending.empty()) {
    throw FormatError(fmt::format("image {} of {} is neither PNG nor JPEG",
                                  number, camera_name(camera)));
  }
  base::write_new_file(
      folder_ / "images" /
          fmt::format("{}_{:06}{}", camera_name(camera), number, ending),
      bytes);
  ++number;
  show_progress();
}

void EpisodeWriter::copy_image(EpisodeCamera camera, const fs::path& file) {
  const auto bytes = base::try_read_file(file);
  if (!bytes) {
    throw FormatError(fmt::format("'{}' cannot be read", file.string()));
  }
  base::write_new_file(folder_ / "images" / file.filename(), *bytes);
  ++num_images(camera);
  show_progress();
}

void EpisodeWriter::show_progress() const {
  if (on_progress_) on_progress_();
}

void EpisodeWriter::set_sentence(std::string_view sentence) {
  const std::string text(base::trim(sentence));
  if (text.empty()) throw FormatError("the sentence is empty");
  if (!base::is_utf8(text)) throw FormatError("the sentence is not UTF-8 text");
  base::write_new_file(folder_ / "language_task.txt", text + "\n");
  has_sentence_ = true;
}

void EpisodeWriter::set_actions(std::span<const formats::Action> actions) {
  for (size_t row = 0; row < actions.size(); ++row) {
    for (size_t i = 0; i < formats::kActionSize; ++i) {
      if (std::isfinite(actions[row][i])) continue;
      throw FormatError(fmt::format("action {}: {} is {}, no finite number",
                                    row, formats::kActionNames[i],
                                    actions[row][i]));
    }
  }
  base::write_new_file(folder_ / "actions.csv",
                       formats::action_csv_text(actions));
  num_actions_ = actions.size();
}

void EpisodeWriter::check_parts() const {
  if (!has_sentence_) throw FormatError("there is no sentence");
  if (num_workspace_ == 0) throw FormatError("there are no frames");
  if (num_wrist_ != 0 && num_wrist_ != num_workspace_) {
    throw FormatError(fmt::format("{} workspace images, but {} of the wrist",
                                  num_workspace_, num_wrist_));
  }
  if (num_actions_ < num_workspace_) {
    throw FormatError(
        fmt::format("{} actions for {} frames", num_actions_, num_workspace_));
  }
}

void EpisodeWriter::commit() {
  check_parts();
  sync_file_system(folder_);
  if (std::rename(folder_.c_str(), place_.c_str()) == 0) {
    folder_.clear();
    return;
  }
  if (errno != ENOTEMPTY && errno != EEXIST) cannot("write", place_);
  if (renameat2(AT_FDCWD, folder_.c_str(), AT_FDCWD, place_.c_str(),
                RENAME_EXCHANGE) != 0) {
    cannot("exchange", place_);
  }
  // The destructor removes what was there before.
}

void remove_partial_episodes(const fs::path& split) {
  std::error_code problem;
  std::vector<fs::path> partial;
  for (fs::directory_iterator entry(split, problem), end;
       !problem && entry != end; entry.increment(problem)) {
    if (entry->path().filename().string().starts_with(kPartial)) {
      partial.push_back(entry->path());
    }
  }
  for (const fs::path& folder : partial) remove_folder(folder);
}

}  // namespace lockstep::conversion
