// One episode on its way into the local layout.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/formats/action_csv.h"

namespace lockstep::conversion {

enum class EpisodeCamera { kWorkspace, kWrist };

// Collects an episode in a hidden folder ".partial-..." beside its place;
// commit() gives it its name. Destroyed without commit(): the hidden folder is
// removed. A killed process leaves it to remove_partial_episodes(). Not
// thread-safe.
//
// Throws IoError when something cannot be written, FormatError for content that
// makes no episode.
class EpisodeWriter {
 public:
  // `place` is {data_dir}/{split}/{name}; the split's folder is made.
  // `on_progress` is called for each image.
  explicit EpisodeWriter(const std::filesystem::path& place,
                         std::function<void()> on_progress = {});
  ~EpisodeWriter();
  EpisodeWriter(const EpisodeWriter&) = delete;
  EpisodeWriter& operator=(const EpisodeWriter&) = delete;

  // The next image of a camera: the bytes of a PNG or JPEG file, written as
  // they are.
  void add_image(EpisodeCamera camera, std::string_view bytes);

  // The images of a camera are files that exist, copied with their names.
  void copy_image(EpisodeCamera camera, const std::filesystem::path& file);

  // For sources that read long before the next image.
  void show_progress() const;

  void set_sentence(std::string_view sentence);
  void set_actions(std::span<const formats::Action> actions);

  // Checks that the parts fit together, makes them durable and gives the folder
  // its name; an episode that is there is exchanged and then removed.
  void commit();

 private:
  size_t& num_images(EpisodeCamera camera);
  void check_parts() const;

  std::filesystem::path place_;
  std::function<void()> on_progress_;
  std::filesystem::path folder_;  // Empty after commit().
  size_t num_workspace_ = 0;
  size_t num_wrist_ = 0;
  size_t num_actions_ = 0;
  bool has_sentence_ = false;
};

// Removes what killed processes left in the folder of a split; nothing when
// there is no such folder.
void remove_partial_episodes(const std::filesystem::path& split);

}  // namespace lockstep::conversion
