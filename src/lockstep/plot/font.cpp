#include "lockstep/plot/font.h"

#include <stb/stb_truetype.h>

#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "lockstep/base/files.h"
#include "lockstep/base/utf8.h"
#include "lockstep/error.h"

// The bytes of the font file, taken in by the assembler. LOCKSTEP_FONT is its
// path (CMakeLists.txt).
asm(".pushsection .rodata\n"
    ".balign 16\n"
    "kLockstepFont:\n"
    ".incbin \"" LOCKSTEP_FONT
    "\"\n"
    ".byte 0\n"
    ".popsection\n");
extern "C" __attribute__((visibility("hidden")))
const unsigned char kLockstepFont[];

namespace lockstep::plot {
namespace {

// Takes one character off the front of a text that is valid.
char32_t take_character(std::string_view& text) {
  const size_t size = base::code_point_size(text);
  const auto first = static_cast<unsigned char>(text[0]);
  char32_t code = size == 1 ? first : first & (0x7fU >> size);
  for (size_t i = 1; i < size; ++i) {
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  text.remove_prefix(size);
  return code;
}

// One font file.
struct Face {
  std::string bytes = {};  // Empty: those in the library.
  FontFile file = {};
  stbtt_fontinfo info = {};

  int glyph_of(char32_t character) const {
    return stbtt_FindGlyphIndex(&info, static_cast<int>(character));
  }
  float scale(double size) const {
    return stbtt_ScaleForMappingEmToPixels(&info, static_cast<float>(size));
  }
};

// Null when it cannot be read.
std::unique_ptr<Face> open_face(const FontFile& file) {
  auto bytes = base::try_read_file(file.path);
  if (!bytes || bytes->empty()) return nullptr;
  auto face = std::make_unique<Face>();
  face->bytes = std::move(*bytes);
  face->file = file;
  const auto* data = reinterpret_cast<const unsigned char*>(face->bytes.data());
  const int offset = stbtt_GetFontOffsetForIndex(data, file.index);
  if (offset < 0 || stbtt_InitFont(&face->info, data, offset) == 0) {
    return nullptr;
  }
  return face;
}

struct Letter {
  const Face* face = nullptr;
  int glyph = 0;
};

Glyph draw_letter(const Letter& letter, double size, Point at) {
  const stbtt_fontinfo* info = &letter.face->info;
  const float scale = letter.face->scale(size);
  const double whole = std::floor(at.x);
  const auto shift = static_cast<float>(at.x - whole);
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
  stbtt_GetGlyphBitmapBoxSubpixel(info, letter.glyph, scale, scale, shift, 0,
                                  &left, &top, &right, &bottom);
  if (right <= left || bottom <= top) return {};
  Glyph glyph{.left = static_cast<int>(whole) + left,
              .top = static_cast<int>(std::lround(at.y)) + top,
              .width = right - left,
              .height = bottom - top};
  glyph.coverage.resize(size_t(glyph.width) * size_t(glyph.height));
  stbtt_MakeGlyphBitmapSubpixel(info, glyph.coverage.data(), glyph.width,
                                glyph.height, glyph.width, scale, scale, shift,
                                0, letter.glyph);
  return glyph;
}

}  // namespace

struct Font::Impl {
  Face main = {};
  FontFinder finder = {};
  std::mutex mutex = {};  // Guards what follows.
  std::vector<std::unique_ptr<const Face>> others = {};
  std::map<char32_t, Letter> found = {};

  // No value when no font has it.
  std::optional<Letter> find(char32_t character);

  // Calls `each` with every letter and where it begins; returns where the text
  // ends.
  template <typename Each>
  double walk(std::string_view text, double size, Each each);

 private:
  Letter find_in_others(char32_t character);
  Letter open_other(char32_t character);
};

std::optional<Letter> Font::Impl::find(char32_t character) {
  if (character < 0x20 || character == 0x7f) character = ' ';
  if (const int glyph = main.glyph_of(character); glyph != 0) {
    return Letter{&main, glyph};
  }
  const std::lock_guard lock(mutex);
  const auto known = found.find(character);
  const Letter letter = known != found.end()
                            ? known->second
                            : found[character] = find_in_others(character);
  if (letter.face == nullptr) return std::nullopt;
  return letter;
}

Letter Font::Impl::find_in_others(char32_t character) {
  for (const auto& face : others) {
    const int glyph = face->glyph_of(character);
    if (glyph != 0) return {face.get(), glyph};
  }
  return open_other(character);
}

Letter Font::Impl::open_other(char32_t character) {
  const auto file = finder ? finder(character) : std::nullopt;
  if (!file) return {};
  for (const auto& face : others) {
    const bool is_open =
        face->file.path == file->path && face->file.index == file->index;
    if (is_open) return {};
  }
  auto face = open_face(*file);
  if (face == nullptr) return {};
  others.push_back(std::move(face));
  const int glyph = others.back()->glyph_of(character);
  return glyph == 0 ? Letter{} : Letter{others.back().get(), glyph};
}

template <typename Each>
double Font::Impl::walk(std::string_view text, double size, Each each) {
  const std::string valid = base::as_utf8(text);
  const Letter unknown{&main, main.glyph_of('?')};
  std::string_view rest = valid;
  double x = 0;
  Letter before;
  while (!rest.empty()) {
    const Letter letter = find(take_character(rest)).value_or(unknown);
    const double scale = letter.face->scale(size);
    if (before.face == letter.face) {
      x += scale * stbtt_GetGlyphKernAdvance(&letter.face->info, before.glyph,
                                             letter.glyph);
    }
    each(letter, x);
    int advance = 0;
    int bearing = 0;
    stbtt_GetGlyphHMetrics(&letter.face->info, letter.glyph, &advance,
                           &bearing);
    x += scale * advance;
    before = letter;
  }
  return x;
}

Font::Font(FontFinder finder) : impl_(std::make_unique<Impl>()) {
  impl_->finder = std::move(finder);
  LOCKSTEP_CHECK(stbtt_InitFont(&impl_->main.info, kLockstepFont, 0) != 0,
                 "the font in the library is damaged");
}

Font::~Font() = default;

double Font::width(std::string_view text, double size) const {
  return impl_->walk(text, size, [](const Letter&, double) {});
}

std::vector<Glyph> Font::glyphs(std::string_view text, double size,
                                Point at) const {
  std::vector<Glyph> result;
  impl_->walk(text, size, [&](const Letter& letter, double offset) {
    Glyph glyph = draw_letter(letter, size, {at.x + offset, at.y});
    if (!glyph.coverage.empty()) result.push_back(std::move(glyph));
  });
  return result;
}

std::string Font::missing(std::string_view text) const {
  const std::string valid = base::as_utf8(text);
  std::string_view rest = valid;
  std::string result;
  while (!rest.empty()) {
    const std::string character(rest.substr(0, base::code_point_size(rest)));
    if (!impl_->find(take_character(rest)) &&
        result.find(character) == std::string::npos) {
      result += character;
    }
  }
  return result;
}

}  // namespace lockstep::plot
