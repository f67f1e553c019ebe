#include "lockstep/track/media_file.h"

#include <fmt/format.h>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/error.h"
#include "lockstep/formats/png.h"
#include "lockstep/formats/sha256.h"

namespace lockstep::track {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigestLettersInNames = 20;

// wandb takes some characters in a path for a pattern.
std::string path_of_title(const std::string& title) {
  std::string plain = title;
  for (char& c : plain) {
    const bool is_kept =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        (c >= '0' && c <= '9') ||
        std::string_view("_.=+-/").find(c) != std::string_view::npos;
    if (!is_kept) c = '_';
  }
  std::vector<std::string> parts;
  for (const std::string& part : base::split(plain, '/')) {
    const bool has_name = part.find_first_not_of('.') != std::string::npos;
    parts.push_back(has_name ? part : "_");
  }
  return base::join(parts, "/");
}

struct Media {
  std::string type = {};  // "image-file"
  std::string kind = {};  // "images"
  std::string ending = {};
  std::string title = {};
  std::string bytes = {};
};

std::vector<WandbItem> write_media(const fs::path& files, int64_t step,
                                   const Media& media) {
  const std::string digest = formats::sha256_of(media.bytes);
  const std::string path = fmt::format(
      "media/{}/{}_{}_{}.{}", media.kind, path_of_title(media.title), step,
      std::string_view(digest).substr(0, kDigestLettersInNames), media.ending);
  std::error_code error;
  fs::create_directories((files / path).parent_path(), error);
  if (error) {
    throw IoError(fmt::format("cannot make the folder of {}: {}",
                              (files / path).string(), error.message()));
  }
  base::write_file_atomically(files / path, media.bytes);
  return {{{media.title, "_type"}, wandb_json(media.type)},
          {{media.title, "path"}, wandb_json(path)},
          {{media.title, "sha256"}, wandb_json(digest)},
          {{media.title, "size"}, std::to_string(media.bytes.size())}};
}

std::string page_of(const std::string& text) {
  std::string escaped = base::replace_all(text, "&", "&amp;");
  escaped = base::replace_all(std::move(escaped), "<", "&lt;");
  escaped = base::replace_all(std::move(escaped), ">", "&gt;");
  return "<!doctype html><meta charset=\"utf-8\">"
         "<pre style=\"white-space: pre-wrap\">" +
         escaped + "</pre>\n";
}

}  // namespace

std::vector<WandbItem> write_image(const fs::path& files, int64_t step,
                                   const ImageRecord& image) {
  const formats::PngHeader header = formats::read_png_header(image.png);
  auto items = write_media(
      files, step, {"image-file", "images", "png", image.title, image.png});
  items.push_back({{image.title, "format"}, wandb_json("png")});
  items.push_back({{image.title, "width"}, std::to_string(header.width)});
  items.push_back({{image.title, "height"}, std::to_string(header.height)});
  return items;
}

std::vector<WandbItem> write_text(const fs::path& files, int64_t step,
                                  const TextNote& note) {
  return write_media(
      files, step,
      {"html-file", "html", "html", note.title, page_of(note.text)});
}

}  // namespace lockstep::track
