# What `cmake --install` copies: programs, libraries, public headers, CMake package.
#
# The package is written by hand (LockstepConfig.cmake.in) and not exported: the exported
# one would carry our warning flags and an absolute list of libtorch's parts to the user.
include(CMakePackageConfigHelpers)
set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep)

foreach(_target IN ITEMS lockstep lockstep-prepare lockstep-worker lockstep_shared lockstep_cuda)
  if(TARGET ${_target})
    install(TARGETS ${_target}
      RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()

# The font inside liblockstep comes with its terms.
if(EXISTS /usr/share/doc/fonts-dejavu-core/copyright)
  install(FILES /usr/share/doc/fonts-dejavu-core/copyright
    DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME DejaVuSans-copyright.txt)
endif()

# Copies the public headers of one target, as lockstep/<folder>/<file>.
function(lockstep_install_headers target)
  get_target_property(_headers ${target} HEADER_SET)
  foreach(_header IN LISTS _headers)
    get_filename_component(_header "${_header}" ABSOLUTE)
    file(RELATIVE_PATH _relative "${PROJECT_SOURCE_DIR}/include" "${_header}")
    get_filename_component(_folder "${_relative}" DIRECTORY)
    install(FILES "${_header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/${_folder}")
  endforeach()
endfunction()

# All folders but those of the launcher and of lockstep-prepare are in liblockstep.
get_property(_folders GLOBAL PROPERTY LOCKSTEP_LIBRARIES)
list(REMOVE_ITEM _folders launch conversion)
foreach(_folder IN LISTS _folders)
  lockstep_install_headers(lockstep_${_folder})
endforeach()
lockstep_install_headers(lockstep_shared)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/LockstepConfig.cmake.in
  ${PROJECT_BINARY_DIR}/LockstepConfig.cmake INSTALL_DESTINATION ${_package_dir}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/LockstepConfig.cmake
  ${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindLibtorch.cmake
  DESTINATION ${_package_dir})
