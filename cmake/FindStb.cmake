# stb's headers, for the letters of plots.
# Out: Stb::stb
find_path(Stb_INCLUDE_DIR stb/stb_truetype.h)
mark_as_advanced(Stb_INCLUDE_DIR)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Stb REQUIRED_VARS Stb_INCLUDE_DIR)
if(Stb_FOUND AND NOT TARGET Stb::stb)
  add_library(Stb::stb INTERFACE IMPORTED)
  target_include_directories(Stb::stb SYSTEM INTERFACE ${Stb_INCLUDE_DIR})
endif()
