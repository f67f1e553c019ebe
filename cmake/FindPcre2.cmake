# PCRE2, for the patterns of tokenizers. Debian's package has no usable CMake files.
# Out: Pcre2::pcre2_8
find_library(Pcre2_LIBRARY pcre2-8)
find_path(Pcre2_INCLUDE_DIR pcre2.h)
mark_as_advanced(Pcre2_LIBRARY Pcre2_INCLUDE_DIR)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Pcre2 REQUIRED_VARS Pcre2_LIBRARY Pcre2_INCLUDE_DIR)
if(Pcre2_FOUND AND NOT TARGET Pcre2::pcre2_8)
  add_library(Pcre2::pcre2_8 UNKNOWN IMPORTED)
  set_target_properties(Pcre2::pcre2_8 PROPERTIES
    IMPORTED_LOCATION "${Pcre2_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Pcre2_INCLUDE_DIR}")
endif()
