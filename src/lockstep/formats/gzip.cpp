#include "lockstep/formats/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "lockstep/error.h"

namespace lockstep::formats {
namespace {

constexpr size_t kChunk = 1 << 16;
constexpr int kGzipOnly = 16;  // Added to the window's bits.

struct Stream : z_stream {
  Stream() : z_stream{} {
    if (inflateInit2(this, MAX_WBITS + kGzipOnly) != Z_OK) {
      throw FormatError("zlib does not start");
    }
  }
  ~Stream() { inflateEnd(this); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

// Appends one member; returns how many bytes it took.
size_t inflate_member(std::string_view bytes, uint64_t max_bytes,
                      std::string& text) {
  Stream stream;
  size_t given = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      const size_t part = std::min<size_t>(bytes.size() - given,
                                           std::numeric_limits<uInt>::max());
      if (part == 0) throw FormatError("the gzip file is truncated");
      // zlib reads only, but its type does not say so.
      stream.next_in =
          reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + given));
      stream.avail_in = static_cast<uInt>(part);
      given += part;
    }
    const size_t old = text.size();
    text.resize(old + kChunk);
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + old);
    stream.avail_out = kChunk;
    status = inflate(&stream, Z_NO_FLUSH);
    text.resize(old + kChunk - stream.avail_out);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      throw FormatError(fmt::format("the gzip file is damaged ({})",
                                    stream.msg ? stream.msg : "zlib error"));
    }
    if (text.size() > max_bytes) {
      throw FormatError(
          fmt::format("the gzip file holds more than {} bytes", max_bytes));
    }
  }
  return given - stream.avail_in;
}

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string gunzip(std::string_view bytes, uint64_t max_bytes) {
  std::string text;
  do {
    bytes.remove_prefix(inflate_member(bytes, max_bytes, text));
    // Some programs fill the last block of a file with zeros.
  } while (bytes.find_first_not_of('\0') != std::string_view::npos);
  return text;
}

}  // namespace lockstep::formats
