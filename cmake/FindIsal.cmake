# ISA-L: CRC many times as fast as zlib's. Debian's package has no CMake files.
# Out: Isal::isal
find_library(Isal_LIBRARY isal)
find_path(Isal_INCLUDE_DIR isa-l/crc.h)
mark_as_advanced(Isal_LIBRARY Isal_INCLUDE_DIR)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Isal REQUIRED_VARS Isal_LIBRARY Isal_INCLUDE_DIR)
if(Isal_FOUND AND NOT TARGET Isal::isal)
  add_library(Isal::isal UNKNOWN IMPORTED)
  set_target_properties(Isal::isal PROPERTIES
    IMPORTED_LOCATION "${Isal_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Isal_INCLUDE_DIR}")
endif()
