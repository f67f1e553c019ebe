#include "lockstep/plot/font.h"

#include <string>

#include "lockstep/base/utf8.h"
#include "lockstep/error.h"

#define STB_TRUETYPE_IMPLEMENTATION
#define STBTT_STATIC
#include <stb/stb_truetype.h>

// The bytes of the font file, taken in by the assembler. LOCKSTEP_FONT is its
// path (CMakeLists.txt).
asm(".pushsection .rodata\n"
    ".balign 16\n"
    "lockstep_font_begin:\n"
    ".incbin \"" LOCKSTEP_FONT
    "\"\n"
    ".byte 0\n"
    ".popsection\n");
extern "C" __attribute__((visibility("hidden")))
const unsigned char lockstep_font_begin[];

namespace lockstep::plot {
namespace {

// Takes one character off the front of a text that is valid.
int take_character(std::string_view& text) {
  const size_t size = base::code_point_size(text);
  const auto first = static_cast<unsigned char>(text[0]);
  int code = size == 1 ? first : first & (0x7f >> size);
  for (size_t i = 1; i < size; ++i) {
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  text.remove_prefix(size);
  return code;
}

}  // namespace

struct Font::Impl {
  stbtt_fontinfo info = {};

  // Calls `each` with every letter, the one behind it (0: none) and where it
  // begins; returns where the text ends.
  template <typename Each>
  double walk(std::string_view text, double scale, Each each) const;
};

template <typename Each>
double Font::Impl::walk(std::string_view text, double scale, Each each) const {
  const std::string valid = base::as_utf8(text);
  std::string_view rest = valid;
  double x = 0;
  int before = 0;
  while (!rest.empty()) {
    const int glyph = stbtt_FindGlyphIndex(&info, take_character(rest));
    if (before != 0) {
      x += scale * stbtt_GetGlyphKernAdvance(&info, before, glyph);
    }
    each(glyph, x);
    int advance = 0;
    int bearing = 0;
    stbtt_GetGlyphHMetrics(&info, glyph, &advance, &bearing);
    x += scale * advance;
    before = glyph;
  }
  return x;
}

Font::Font() {
  auto impl = std::make_unique<Impl>();
  LOCKSTEP_CHECK(stbtt_InitFont(&impl->info, lockstep_font_begin, 0) != 0,
                 "the font in the library is damaged");
  impl_ = std::move(impl);
}

Font::~Font() = default;

double Font::width(std::string_view text, double size) const {
  const double scale =
      stbtt_ScaleForMappingEmToPixels(&impl_->info, static_cast<float>(size));
  return impl_->walk(text, scale, [](int, double) {});
}

std::vector<Glyph> Font::glyphs(std::string_view text, double size,
                                Point at) const {
  const stbtt_fontinfo* info = &impl_->info;
  const float scale =
      stbtt_ScaleForMappingEmToPixels(info, static_cast<float>(size));
  std::vector<Glyph> result;
  impl_->walk(text, scale, [&](int letter, double offset) {
    const double x = at.x + offset;
    const double whole = std::floor(x);
    const auto shift = static_cast<float>(x - whole);
    int left = 0;
    int top = 0;
    int right = 0;
    int bottom = 0;
    stbtt_GetGlyphBitmapBoxSubpixel(info, letter, scale, scale, shift, 0, &left,
                                    &top, &right, &bottom);
    if (right <= left || bottom <= top) return;
    Glyph glyph{.left = static_cast<int>(whole) + left,
                .top = static_cast<int>(std::lround(at.y)) + top,
                .width = right - left,
                .height = bottom - top};
    glyph.coverage.resize(static_cast<size_t>(glyph.width * glyph.height));
    stbtt_MakeGlyphBitmapSubpixel(info, glyph.coverage.data(), glyph.width,
                                  glyph.height, glyph.width, scale, scale,
                                  shift, 0, letter);
    result.push_back(std::move(glyph));
  });
  return result;
}

}  // namespace lockstep::plot
