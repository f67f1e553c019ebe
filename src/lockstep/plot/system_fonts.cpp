#include "lockstep/plot/system_fonts.h"

#include <dlfcn.h>
#include <fontconfig/fontconfig.h>

#include <memory>

namespace lockstep::plot {
namespace {

// Fontconfig keeps state of its own: once loaded, it stays.
void* fontconfig_library() {
  return dlopen("libfontconfig.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

template <typename Function>
bool load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

struct Fontconfig {
  decltype(&FcPatternCreate) create_pattern = nullptr;
  decltype(&FcPatternDestroy) destroy_pattern = nullptr;
  decltype(&FcPatternAddString) add_string = nullptr;
  decltype(&FcPatternAddBool) add_bool = nullptr;
  decltype(&FcPatternAddCharSet) add_characters = nullptr;
  decltype(&FcPatternGetString) get_string = nullptr;
  decltype(&FcPatternGetInteger) get_integer = nullptr;
  decltype(&FcPatternGetCharSet) get_characters = nullptr;
  decltype(&FcCharSetCreate) create_characters = nullptr;
  decltype(&FcCharSetDestroy) destroy_characters = nullptr;
  decltype(&FcCharSetAddChar) add_character = nullptr;
  decltype(&FcCharSetHasChar) has_character = nullptr;
  decltype(&FcConfigSubstitute) substitute = nullptr;
  decltype(&FcDefaultSubstitute) substitute_defaults = nullptr;
  decltype(&FcFontMatch) match = nullptr;

  bool load_from(void* library);
};

bool Fontconfig::load_from(void* library) {
  return library != nullptr &&
         load(library, "FcPatternCreate", create_pattern) &&
         load(library, "FcPatternDestroy", destroy_pattern) &&
         load(library, "FcPatternAddString", add_string) &&
         load(library, "FcPatternAddBool", add_bool) &&
         load(library, "FcPatternAddCharSet", add_characters) &&
         load(library, "FcPatternGetString", get_string) &&
         load(library, "FcPatternGetInteger", get_integer) &&
         load(library, "FcPatternGetCharSet", get_characters) &&
         load(library, "FcCharSetCreate", create_characters) &&
         load(library, "FcCharSetDestroy", destroy_characters) &&
         load(library, "FcCharSetAddChar", add_character) &&
         load(library, "FcCharSetHasChar", has_character) &&
         load(library, "FcConfigSubstitute", substitute) &&
         load(library, "FcDefaultSubstitute", substitute_defaults) &&
         load(library, "FcFontMatch", match);
}

using Pattern = std::unique_ptr<FcPattern, decltype(&FcPatternDestroy)>;
using Characters = std::unique_ptr<FcCharSet, decltype(&FcCharSetDestroy)>;

Pattern pattern_for(const Fontconfig& fc, char32_t character) {
  const Characters wanted(fc.create_characters(), fc.destroy_characters);
  fc.add_character(wanted.get(), character);
  Pattern pattern(fc.create_pattern(), fc.destroy_pattern);
  fc.add_characters(pattern.get(), FC_CHARSET, wanted.get());
  fc.add_string(pattern.get(), FC_FAMILY,
                reinterpret_cast<const FcChar8*>("sans-serif"));
  fc.add_bool(pattern.get(), FC_SCALABLE, FcTrue);
  fc.add_bool(pattern.get(), FC_COLOR, FcFalse);
  fc.substitute(nullptr, pattern.get(), FcMatchPattern);
  fc.substitute_defaults(pattern.get());
  return pattern;
}

}  // namespace

std::optional<FontFile> find_system_font(char32_t character) {
  Fontconfig fc;
  if (!fc.load_from(fontconfig_library())) return std::nullopt;
  const Pattern pattern = pattern_for(fc, character);
  FcResult ignored = FcResultNoMatch;
  const Pattern font(fc.match(nullptr, pattern.get(), &ignored),
                     fc.destroy_pattern);
  FcCharSet* characters = nullptr;
  FcChar8* path = nullptr;
  int index = 0;
  const bool is_found =
      font != nullptr &&
      fc.get_characters(font.get(), FC_CHARSET, 0, &characters) ==
          FcResultMatch &&
      fc.has_character(characters, character) == FcTrue &&
      fc.get_string(font.get(), FC_FILE, 0, &path) == FcResultMatch;
  if (!is_found) return std::nullopt;
  fc.get_integer(font.get(), FC_INDEX, 0, &index);
  // The upper half names an instance of a variable font.
  return FontFile{.path = reinterpret_cast<const char*>(path),
                  .index = index & 0xffff};
}

}  // namespace lockstep::plot
