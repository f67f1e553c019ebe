#include "lockstep/datasets/conversion/video_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "lockstep/error.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/imgutils.h>
#include <libswscale/swscale.h>
}

namespace lockstep::conversion {
namespace {

template <typename T, void (*free_it)(T**)>
struct FreeByAddress {
  void operator()(T* object) const { free_it(&object); }
};
struct FreeScaler {
  void operator()(SwsContext* scaler) const { sws_freeContext(scaler); }
};
using FormatPointer =
    std::unique_ptr<AVFormatContext,
                    FreeByAddress<AVFormatContext, avformat_close_input>>;
using CodecPointer =
    std::unique_ptr<AVCodecContext,
                    FreeByAddress<AVCodecContext, avcodec_free_context>>;
using PacketPointer =
    std::unique_ptr<AVPacket, FreeByAddress<AVPacket, av_packet_free>>;
using FramePointer =
    std::unique_ptr<AVFrame, FreeByAddress<AVFrame, av_frame_free>>;
using ScalerPointer = std::unique_ptr<SwsContext, FreeScaler>;

constexpr int kMostSide = 8192;

// Those that LeRobot's and similar recorders write; fewer decoders, fewer
// mistakes that a hostile file can use.
constexpr std::array kCodecs = {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC,
                                AV_CODEC_ID_AV1, AV_CODEC_ID_VP9,
                                AV_CODEC_ID_MPEG4};

std::string reason_of(int error) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
  av_strerror(error, text.data(), text.size());
  return text.data();
}

}  // namespace

struct VideoFile::Impl {
  std::string path;
  FormatPointer format = {};
  AVStream* stream = nullptr;
  CodecPointer codec = {};
  PacketPointer packet{av_packet_alloc()};
  bool has_packet = false;  // Read, but not yet given to the decoder.
  // The last two frames in the order of their times, and the next one.
  FramePointer previous{av_frame_alloc()};
  FramePointer current{av_frame_alloc()};
  FramePointer incoming{av_frame_alloc()};
  int64_t first_good = 0;  // Frames before it lack those they refer to.
  int64_t read_to = 0;     // Decoding time of the last packet.
  bool is_at_end = false;
  ScalerPointer scaler = {};
  FramePointer rgb{av_frame_alloc()};
  std::vector<uint8_t> pixels = {};

  [[noreturn]] void refuse(const std::string& why) const {
    throw FormatError(fmt::format("'{}': {}", path, why));
  }
  void check(int result, const char* what) const {
    if (result < 0) {
      refuse(fmt::format("cannot be read as a video: {} ({})", what,
                         reason_of(result)));
    }
  }

  void open() {
    av_log_set_level(AV_LOG_QUIET);
    AVDictionary* options = nullptr;
    // Whatever the file refers to, no other file and no network address is
    // opened.
    av_dict_set(&options, "protocol_whitelist", "file", 0);
    AVFormatContext* opened = nullptr;
    const int result =
        avformat_open_input(&opened, ("file:" + path).c_str(),
                            av_find_input_format("mp4"), &options);
    av_dict_free(&options);
    check(result, "is it a whole MP4 file?");
    format.reset(opened);
    check(avformat_find_stream_info(opened, nullptr), "its streams");
    const int index =
        av_find_best_stream(opened, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
    check(index, "it has no images");
    stream = opened->streams[index];
    open_codec();
  }

  void open_codec() {
    const AVCodecID id = stream->codecpar->codec_id;
    const AVCodec* decoder = avcodec_find_decoder(id);
    const bool is_known =
        std::find(kCodecs.begin(), kCodecs.end(), id) != kCodecs.end();
    if (!is_known || decoder == nullptr) {
      refuse(
          fmt::format("is a video in {}, which cannot be read; H.264, HEVC, "
                      "AV1, VP9 and MPEG-4 can",
                      avcodec_get_name(id)));
    }
    codec.reset(avcodec_alloc_context3(decoder));
    check(avcodec_parameters_to_context(codec.get(), stream->codecpar),
          "its parameters");
    codec->max_pixels = int64_t{kMostSide} * kMostSide;
    codec->thread_count = 1;  // Episodes are read by several processes.
    check(avcodec_open2(codec.get(), decoder, nullptr), "its decoder");
  }

  double seconds(int64_t time) const {
    return static_cast<double>(time) * av_q2d(stream->time_base);
  }
  int64_t ticks(double time) const {
    return std::llround(time / av_q2d(stream->time_base));
  }
  static bool is_there(const FramePointer& frame) { return frame->width > 0; }
  double time_of(const FramePointer& frame) const {
    return seconds(frame->best_effort_timestamp);
  }

  // The next packet of the video. False at the end of the file.
  bool read_packet() {
    while (true) {
      av_packet_unref(packet.get());
      const int result = av_read_frame(format.get(), packet.get());
      if (result == AVERROR_EOF) return false;
      check(result, "is it whole?");
      if (packet->stream_index != stream->index) continue;
      if (packet->dts != AV_NOPTS_VALUE) read_to = packet->dts;
      return true;
    }
  }

  void feed_decoder() {
    if (!has_packet && !read_packet()) {
      // Makes it give all frames that it holds.
      check(avcodec_send_packet(codec.get(), nullptr), "its end");
      return;
    }
    has_packet = false;
    check(avcodec_send_packet(codec.get(), packet.get()), "a frame");
  }

  void decode_next(const std::function<void()>& on_decoded) {
    while (true) {
      const int result = avcodec_receive_frame(codec.get(), incoming.get());
      if (result == AVERROR(EAGAIN)) {
        feed_decoder();
        continue;
      }
      if (result == AVERROR_EOF) {
        is_at_end = true;
        return;
      }
      check(result, "a frame");
      on_decoded();
      if (incoming->best_effort_timestamp < first_good) continue;
      if (incoming->decode_error_flags != 0 ||
          (incoming->flags & AV_FRAME_FLAG_CORRUPT) != 0) {
        refuse(
            fmt::format("the frame at {:.3f} s is damaged", time_of(incoming)));
      }
      std::swap(previous, current);
      std::swap(current, incoming);
      return;
    }
  }

  // Whether a key frame lies between what was read and the time.
  bool is_far_behind(double time) const {
    constexpr double kNear = 1;
    if (!is_there(current) || time < time_of(current) + kNear) return false;
    const AVIndexEntry* entry = avformat_index_get_entry_from_timestamp(
        stream, ticks(time), AVSEEK_FLAG_BACKWARD);
    return entry != nullptr && entry->timestamp > read_to;
  }

  bool must_seek(double time) const {
    if (!is_there(current)) return true;
    if (is_there(previous)) {
      return time < time_of(previous) || is_far_behind(time);
    }
    return time < time_of(current) || is_far_behind(time);
  }

  // Begins at a key frame that is shown at the time or before. Files are
  // ordered by decoding time, so that the first try may end too late.
  void seek(double time) {
    for (double margin = 0;; margin = 2 * margin + 1) {
      check(av_seek_frame(format.get(), stream->index, ticks(time - margin),
                          AVSEEK_FLAG_BACKWARD),
            "its index");
      avcodec_flush_buffers(codec.get());
      av_frame_unref(previous.get());
      av_frame_unref(current.get());
      is_at_end = false;
      has_packet = read_packet();
      if (!has_packet) return;
      first_good = packet->pts;
      if (packet->pts <= ticks(time) || time < margin) return;
    }
  }

  const FramePointer& frame_at(double time, double tolerance,
                               const std::function<void()>& on_decoded) {
    if (must_seek(time)) seek(time);
    while (!is_at_end && (!is_there(current) || time_of(current) < time)) {
      decode_next(on_decoded);
    }
    if (!is_there(current)) refuse("has no frames");
    const bool is_previous =
        is_there(previous) &&
        std::abs(time_of(previous) - time) <= std::abs(time_of(current) - time);
    const FramePointer& nearest = is_previous ? previous : current;
    const double distance = std::abs(time_of(nearest) - time);
    if (!(distance < tolerance)) {
      refuse(fmt::format(
          "no frame at {:.6f} s: the nearest is at {:.6f} s, {:.6f} s away. "
          "--tolerance_s {:g} takes it",
          time, time_of(nearest), distance, distance * 1.01));
    }
    return nearest;
  }

  // By the flags and the matrix that LeRobot's own readers use.
  void prepare_scaler(const AVFrame& frame) {
    scaler.reset(sws_getCachedContext(
        scaler.release(), frame.width, frame.height,
        static_cast<AVPixelFormat>(frame.format), frame.width, frame.height,
        AV_PIX_FMT_RGB24, SWS_BILINEAR, nullptr, nullptr, nullptr));
    if (!scaler) refuse("its pixels cannot be converted to RGB");
    int* inverse = nullptr;
    int* table = nullptr;
    int source_range = 0;
    int range = 0;
    int brightness = 0;
    int contrast = 0;
    int saturation = 0;
    sws_getColorspaceDetails(scaler.get(), &inverse, &source_range, &table,
                             &range, &brightness, &contrast, &saturation);
    const int* matrix = sws_getCoefficients(frame.colorspace);
    sws_setColorspaceDetails(scaler.get(), matrix, source_range, matrix, range,
                             brightness, contrast, saturation);
  }

  VideoFrame as_rgb(const AVFrame& frame) {
    const int width = frame.width;
    const int height = frame.height;
    if (std::max(width, height) > kMostSide) refuse("its frames are too large");
    prepare_scaler(frame);
    // The scaler writes beyond the ends of rows.
    if (rgb->width != width || rgb->height != height) {
      av_frame_unref(rgb.get());
      rgb->width = width;
      rgb->height = height;
      rgb->format = AV_PIX_FMT_RGB24;
      check(av_frame_get_buffer(rgb.get(), 0), "memory");
    }
    check(sws_scale(scaler.get(), frame.data, frame.linesize, 0, height,
                    rgb->data, rgb->linesize),
          "its pixels");
    const size_t row = size_t(width) * 3;
    pixels.resize(row * size_t(height));
    av_image_copy_plane(pixels.data(), static_cast<int>(row), rgb->data[0],
                        rgb->linesize[0], static_cast<int>(row), height);
    return {.width = width, .height = height, .pixels = pixels};
  }
};

VideoFile::VideoFile(const std::filesystem::path& path)
    : impl_(std::make_unique<Impl>(Impl{.path = path.string()})) {
  impl_->open();
}

VideoFile::~VideoFile() = default;

void VideoFile::frames(const Selection& selection, const TakeFrame& take,
                       const std::function<void()>& on_decoded) {
  for (const double time : selection.times) {
    take(
        impl_->as_rgb(*impl_->frame_at(time, selection.tolerance, on_decoded)));
  }
}

}  // namespace lockstep::conversion
