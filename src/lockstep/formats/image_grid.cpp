#include "lockstep/formats/image_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lockstep/error.h"

namespace lockstep::formats {
namespace {

using GridJson = nlohmann::ordered_json;

constexpr const char* kGridKeyword = "Lockstep image grid";
constexpr int64_t kMostGridSide = 1000;       // Rows, columns, border.
constexpr int64_t kMostGridPixels = 1 << 26;  // 67 million.

int grid_number(const GridJson& json, const char* name, int64_t least) {
  const auto found = json.find(name);
  if (found != json.end() && found->is_number_integer()) {
    const auto value = found->get<int64_t>();
    if (value >= least && value <= kMostGridSide) {
      return static_cast<int>(value);
    }
  }
  throw FormatError(fmt::format(
      "the description of an image grid is damaged: no sound '{}'", name));
}

ImageGrid parse_grid(const std::string& text) {
  const GridJson json =
      GridJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    throw FormatError("the description of an image grid is not JSON");
  }
  ImageGrid grid{.rows = grid_number(json, "rows", 1),
                 .columns = grid_number(json, "columns", 1),
                 .border = grid_number(json, "border", 0)};
  const auto labels = json.find("labels");
  if (labels != json.end() && labels->is_array()) {
    for (const GridJson& label : *labels) {
      grid.labels.push_back(label.is_string() ? label.get<std::string>() : "");
    }
  }
  grid.labels.resize(static_cast<size_t>(grid.rows));
  return grid;
}

RgbImage read_rgb(PngReader& reader) {
  if (int64_t{reader.width()} * reader.height() > kMostGridPixels) {
    throw FormatError(
        fmt::format("an image grid of {} x {} pixels is too large",
                    reader.width(), reader.height()));
  }
  reader.convert(PngConversion::kGreyOrRgb);
  RgbImage image{.width = static_cast<int>(reader.width()),
                 .height = static_cast<int>(reader.height())};
  const size_t count = size_t{reader.width()} * reader.height();
  const auto channels = static_cast<size_t>(reader.channels());
  std::vector<uint8_t> read(count * channels);
  reader.read(read);
  if (channels == 3) {
    image.pixels = std::move(read);
    return image;
  }
  image.pixels.reserve(3 * count);
  for (size_t i = 0; i < count; ++i) {
    image.pixels.insert(image.pixels.end(), 3, read[i * channels]);
  }
  return image;
}

struct Corner {
  int x = 0;
  int y = 0;
};

RgbImage cut_out(const RgbImage& from, Corner corner, int width, int height) {
  RgbImage part{.width = width, .height = height};
  part.pixels.reserve(size_t(width) * size_t(height) * 3);
  for (int y = corner.y; y < corner.y + height; ++y) {
    const auto begin =
        from.pixels.begin() + (int64_t{y} * from.width + corner.x) * 3;
    part.pixels.insert(part.pixels.end(), begin, begin + int64_t{width} * 3);
  }
  return part;
}

}  // namespace

PngText grid_text(const ImageGrid& grid) {
  const GridJson json = {{"rows", grid.rows},
                         {"columns", grid.columns},
                         {"border", grid.border},
                         {"labels", grid.labels}};
  return {
      .keyword = kGridKeyword,
      .text = json.dump(-1, ' ', false, GridJson::error_handler_t::replace)};
}

std::optional<ReadGrid> read_image_grid(std::string_view png) {
  PngReader reader(png);
  const std::string text = reader.text(kGridKeyword);
  if (text.empty()) return std::nullopt;
  ReadGrid result{.grid = parse_grid(text)};
  const ImageGrid& grid = result.grid;
  const RgbImage all = read_rgb(reader);
  const int cell_width = all.width / grid.columns;
  const int cell_height = all.height / grid.rows;
  const int width = cell_width - 2 * grid.border;
  const int height = cell_height - 2 * grid.border;
  if (all.width % grid.columns != 0 || all.height % grid.rows != 0 ||
      width < 1 || height < 1) {
    throw FormatError(fmt::format(
        "an image of {} x {} pixels cannot hold {} rows of {} images",
        all.width, all.height, grid.rows, grid.columns));
  }
  for (int i = 0; i < grid.rows * grid.columns; ++i) {
    const Corner corner{.x = i % grid.columns * cell_width + grid.border,
                        .y = i / grid.columns * cell_height + grid.border};
    result.images.push_back(cut_out(all, corner, width, height));
  }
  return result;
}

}  // namespace lockstep::formats
