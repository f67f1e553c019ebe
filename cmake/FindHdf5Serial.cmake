# The serial HDF5 library. CMake's own FindHDF5 runs compiler wrappers and prefers a parallel one.
# In:  LOCKSTEP_STATIC_DEPS: the archive, and those that it needs.
# Out: Hdf5Serial::hdf5
find_path(Hdf5Serial_INCLUDE_DIR hdf5.h PATH_SUFFIXES hdf5/serial)
set(_hdf5_needs "")
if(LOCKSTEP_STATIC_DEPS)
  find_library(Hdf5Serial_LIBRARY NAMES libhdf5_serial.a)
  find_library(Hdf5Serial_SZIP_LIBRARY NAMES libsz.a)
  find_library(Hdf5Serial_AEC_LIBRARY NAMES libaec.a)
  mark_as_advanced(Hdf5Serial_SZIP_LIBRARY Hdf5Serial_AEC_LIBRARY)
  set(_hdf5_needs "${Hdf5Serial_SZIP_LIBRARY};${Hdf5Serial_AEC_LIBRARY};OpenSSL::Crypto;ZLIB::ZLIB")
else()
  find_library(Hdf5Serial_LIBRARY NAMES hdf5_serial hdf5)
endif()
mark_as_advanced(Hdf5Serial_INCLUDE_DIR Hdf5Serial_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Hdf5Serial REQUIRED_VARS Hdf5Serial_LIBRARY Hdf5Serial_INCLUDE_DIR)
if(Hdf5Serial_FOUND AND NOT TARGET Hdf5Serial::hdf5)
  add_library(Hdf5Serial::hdf5 UNKNOWN IMPORTED)
  set_target_properties(Hdf5Serial::hdf5 PROPERTIES
    IMPORTED_LOCATION "${Hdf5Serial_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Hdf5Serial_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${_hdf5_needs}")
endif()
