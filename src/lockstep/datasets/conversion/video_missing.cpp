// Stands in for video_file.cpp where the libraries are missing.
#include "lockstep/datasets/conversion/video_file.h"
#include "lockstep/error.h"

namespace lockstep::conversion {

struct VideoFile::Impl {};

VideoFile::VideoFile(const std::filesystem::path& path) {
  throw ConfigError("cannot read '" + path.string() +
                    "': this lockstep-prepare was built without FFmpeg's "
                    "libraries. Install them and build again: apt-get install "
                    "-y libavformat-dev libavcodec-dev libavutil-dev "
                    "libswscale-dev && ./lockstep.sh build");
}

VideoFile::~VideoFile() = default;

void VideoFile::frames(const Selection& /*selection*/,
                       const TakeFrame& /*take*/,
                       const std::function<void()>& /*on_decoded*/) {}

}  // namespace lockstep::conversion
