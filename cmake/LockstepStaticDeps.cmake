# Libraries whose archives in Debian are position-independent, so that liblockstep can hold them: static, with hidden
# names, where LOCKSTEP_STATIC_DEPS asks for it. The others (libpng, libjpeg, yaml-cpp, protobuf; ISA-L has no archive)
# stay shared; tools/package puts them into lib/lockstep.
set(_suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
if(LOCKSTEP_STATIC_DEPS)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  # One option each: mold 1.10 never ends with a list of names.
  foreach(_archive IN ITEMS z gif crypto pcre2-8 utf8proc)
    add_link_options(-Wl,--exclude-libs,lib${_archive}.a)
  endforeach()
endif()
find_package(ZLIB REQUIRED)
find_package(GIF 5 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Pcre2 REQUIRED)
find_package(Utf8proc REQUIRED)
set(CMAKE_FIND_LIBRARY_SUFFIXES ${_suffixes})
