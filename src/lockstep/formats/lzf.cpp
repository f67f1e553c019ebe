#include "lockstep/formats/lzf.h"

#include <fmt/format.h>

#include "lockstep/error.h"

namespace lockstep::formats {
namespace {

[[noreturn]] void refuse_lzf(const char* why) {
  throw FormatError(fmt::format("LZF data are damaged: {}", why));
}

class Decompressor {
 public:
  Decompressor(std::span<const uint8_t> in, size_t size)
      : in_(in), size_(size) {}

  std::vector<uint8_t> run() {
    while (!in_.empty()) {
      // Below 32: the number of literal bytes, less one. Else the high three
      // bits are the length of a match and the rest the high bits of its
      // distance.
      constexpr size_t kMatch = 32;
      const size_t control = next();
      if (control < kMatch) {
        copy_literals(control + 1);
      } else {
        copy_match(control);
      }
    }
    if (out_.size() != size_) refuse_lzf("they end early");
    return std::move(out_);
  }

 private:
  size_t next() {
    if (in_.empty()) refuse_lzf("they are cut off");
    const uint8_t byte = in_.front();
    in_ = in_.subspan(1);
    return byte;
  }

  void check_room(size_t count) const {
    if (count > size_ - out_.size()) refuse_lzf("they are too long");
  }

  void copy_literals(size_t count) {
    if (count > in_.size()) refuse_lzf("they are cut off");
    check_room(count);
    const auto literals = in_.first(count);
    out_.insert(out_.end(), literals.begin(), literals.end());
    in_ = in_.subspan(count);
  }

  void copy_match(size_t control) {
    constexpr size_t kLongMatch = 7;  // Another byte is added to the length.
    size_t length = control >> 5U;
    if (length == kLongMatch) length += next();
    length += 2;
    const size_t distance = ((control & 0x1FU) << 8U | next()) + 1;
    if (distance > out_.size()) refuse_lzf("a match lies before their begin");
    check_room(length);
    // One by one: a match may reach into what it makes.
    for (size_t i = 0; i < length; ++i) {
      out_.push_back(out_[out_.size() - distance]);
    }
  }

  std::span<const uint8_t> in_;
  size_t size_;
  std::vector<uint8_t> out_;
};

}  // namespace

std::vector<uint8_t> decompress_lzf(std::span<const uint8_t> bytes,
                                    size_t size) {
  return Decompressor(bytes, size).run();
}

}  // namespace lockstep::formats
