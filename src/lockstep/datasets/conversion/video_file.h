// What is read of video files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>

namespace lockstep::conversion {

// Red, green and blue, 8 bits each, row by row without gaps.
struct VideoFrame {
  int width = 0;
  int height = 0;
  std::span<const uint8_t> pixels = {};
};

// An MP4 file open for reading; H.264, HEVC, AV1, VP9 or MPEG-4. Each object
// may be used by one thread at a time. All functions throw FormatError with the
// file's path for what cannot be read; the constructor throws ConfigError when
// this program was built without the library.
class VideoFile {
 public:
  explicit VideoFile(const std::filesystem::path& path);
  ~VideoFile();
  VideoFile(const VideoFile&) = delete;
  VideoFile& operator=(const VideoFile&) = delete;

  struct Selection {
    // In seconds, ascending.
    std::span<const double> times = {};
    // Throws when no frame is nearer to one of the times than this.
    double tolerance = 0;
  };
  using TakeFrame = std::function<void(const VideoFrame&)>;

  // Calls take() with the frame that is nearest to each of the times.
  // `on_decoded` is called for every frame on the way. Times that follow those
  // of the last call go on where it ended, without decoding anything twice.
  void frames(const Selection& selection, const TakeFrame& take,
              const std::function<void()>& on_decoded);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::conversion
