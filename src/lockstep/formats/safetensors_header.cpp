#include "lockstep/formats/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "lockstep/error.h"
#include "lockstep/formats/tensor_record.h"

namespace lockstep::formats {
namespace {

using nlohmann::json;

constexpr size_t kLongestHeaderExcerpt = 200;

// Where in the header the parser is.
enum class Level {
  kStart,     // Before the opening brace.
  kNames,     // { "name": ...
  kTensor,    // { "name": { "dtype": ...
  kShape,     // { "name": { "shape": [...
  kOffsets,   // { "name": { "data_offsets": [...
  kMetadata,  // { "__metadata__": { "key": ...
};

enum class Field { kNone, kDtype, kShape, kOffsets };

// Events of nlohmann's parser, which ends when one of them throws.
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(size_t) override {
    if (begin_skipped()) return true;
    if (level_ == Level::kStart) {
      level_ = Level::kNames;
    } else if (level_ == Level::kNames) {
      begin_entry();
    } else {
      refuse("an unexpected object");
    }
    return true;
  }

  bool end_object() override {
    if (end_skipped()) return true;
    if (level_ == Level::kTensor) end_tensor();
    field_ = Field::kNone;
    level_ = level_ == Level::kNames ? Level::kStart : Level::kNames;
    return true;
  }

  bool key(std::string& text) override {
    if (skipped_depth_ > 0) return true;
    if (level_ == Level::kTensor) {
      field_ = text == "dtype"          ? Field::kDtype
               : text == "shape"        ? Field::kShape
               : text == "data_offsets" ? Field::kOffsets
                                        : Field::kNone;
    } else {
      key_ = std::move(text);
    }
    return true;
  }

  bool start_array(size_t) override {
    if (begin_skipped()) return true;
    if (level_ == Level::kTensor && field_ == Field::kShape && !has_shape_) {
      level_ = Level::kShape;
      has_shape_ = true;
    } else if (level_ == Level::kTensor && field_ == Field::kOffsets &&
               num_offsets_ == 0) {
      level_ = Level::kOffsets;
    } else {
      refuse("an unexpected list");
    }
    return true;
  }

  bool end_array() override {
    if (end_skipped()) return true;
    level_ = Level::kTensor;
    return true;
  }

  bool string(std::string& text) override {
    if (is_skipped()) return true;
    if (level_ == Level::kMetadata) {
      header_.metadata.emplace_back(std::move(key_), std::move(text));
      return true;
    }
    if (level_ != Level::kTensor || field_ != Field::kDtype) {
      refuse("an unexpected string");
    }
    place_.dtype = find_dtype(&DTypeInfo::safetensors, text);
    if (place_.dtype == nullptr) {
      refuse("the unknown type " + text.substr(0, kLongestHeaderExcerpt));
    }
    return true;
  }

  bool number_unsigned(json::number_unsigned_t number) override {
    if (is_skipped()) return true;
    if (level_ == Level::kShape) {
      if (place_.shape.size() == kMaxDimensions) {
        refuse("more than 64 dimensions");
      }
      if (!std::in_range<int64_t>(number)) refuse("an impossible size");
      place_.shape.push_back(static_cast<int64_t>(number));
    } else if (level_ == Level::kOffsets && num_offsets_ < 2) {
      (num_offsets_++ == 0 ? place_.begin : place_.end) = number;
    } else {
      refuse("an unexpected number");
    }
    return true;
  }

  bool number_integer(json::number_integer_t) override {
    return skip_or_refuse("a negative size or place");
  }
  bool number_float(json::number_float_t, const std::string&) override {
    return skip_or_refuse("a size or offset that is not an integer");
  }
  bool boolean(bool) override { return skip_or_refuse("an unexpected value"); }
  bool null() override { return skip_or_refuse("an unexpected value"); }
  bool binary(json::binary_t&) override { refuse("an unexpected value"); }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    // The parser's own text repeats what it has read last, however long.
    throw FormatError("its header is not JSON at byte " +
                      std::to_string(position));
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw FormatError("its header has " + what + " at '" +
                      key_.substr(0, kLongestHeaderExcerpt) + "'");
  }

  // The value of an entry of a tensor that is not known, or a part of it.
  bool is_skipped() const {
    return skipped_depth_ > 0 ||
           (level_ == Level::kTensor && field_ == Field::kNone);
  }

  bool begin_skipped() {
    if (!is_skipped()) return false;
    ++skipped_depth_;
    return true;
  }

  bool end_skipped() {
    if (skipped_depth_ == 0) return false;
    --skipped_depth_;
    return true;
  }

  bool skip_or_refuse(const char* what) const {
    if (!is_skipped()) refuse(what);
    return true;
  }

  void begin_entry() {
    if (key_ == kSafetensorsMetadata) {
      level_ = Level::kMetadata;
      return;
    }
    level_ = Level::kTensor;
    place_ = {.name = key_};
    field_ = Field::kNone;
    has_shape_ = false;
    num_offsets_ = 0;
  }

  void end_tensor() {
    if (place_.dtype == nullptr || !has_shape_ || num_offsets_ != 2) {
      refuse("a tensor without dtype, shape or offsets");
    }
    place_.shape.shrink_to_fit();
    header_.places.push_back(std::move(place_));
  }

  SafetensorsHeader header_;
  Level level_ = Level::kStart;
  Field field_ = Field::kNone;
  std::string key_;
  SafetensorsPlace place_;
  bool has_shape_ = false;
  int num_offsets_ = 0;
  size_t skipped_depth_ = 0;
};

void check_names(const std::vector<SafetensorsPlace>& places) {
  std::vector<std::string_view> names;
  names.reserve(places.size());
  for (const SafetensorsPlace& place : places) names.push_back(place.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return;
  throw FormatError("two tensors are named '" +
                    std::string(twice->substr(0, kLongestHeaderExcerpt)) + "'");
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text) {
  if (!text.starts_with('{'))
    throw FormatError("its header is not a JSON object");
  HeaderReader reader;
  json::sax_parse(text, &reader);
  SafetensorsHeader header = reader.take();
  check_names(header.places);
  return header;
}

}  // namespace lockstep::formats
