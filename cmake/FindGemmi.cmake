# gemmi, for PDB and mmCIF files. Debian's is headers only and takes its parser of mmCIF from PEGTL; from
# version 0.6 on some of it is in a library.
# Out: Gemmi::gemmi
find_path(Gemmi_INCLUDE_DIR gemmi/pdb.hpp)
find_path(Gemmi_PEGTL_INCLUDE_DIR tao/pegtl.hpp)
find_library(Gemmi_LIBRARY gemmi_cpp)
mark_as_advanced(Gemmi_INCLUDE_DIR Gemmi_PEGTL_INCLUDE_DIR Gemmi_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Gemmi REQUIRED_VARS Gemmi_INCLUDE_DIR Gemmi_PEGTL_INCLUDE_DIR)
if(Gemmi_FOUND AND NOT TARGET Gemmi::gemmi)
  add_library(Gemmi::gemmi INTERFACE IMPORTED)
  target_include_directories(Gemmi::gemmi INTERFACE ${Gemmi_INCLUDE_DIR} ${Gemmi_PEGTL_INCLUDE_DIR})
  if(Gemmi_LIBRARY)
    target_link_libraries(Gemmi::gemmi INTERFACE ${Gemmi_LIBRARY})
  endif()
endif()
