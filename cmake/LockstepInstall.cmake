# What `cmake --install` copies: programs, libraries, public headers, CMake package.
include(CMakePackageConfigHelpers)
set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep)

install(TARGETS lockstep_shared EXPORT LockstepTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS lockstep lockstep-plot lockstep-prepare lockstep-worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(LOCKSTEP_WITH_CUDA)
  install(TARGETS lockstep_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# Files that programs look for in ../share/lockstep.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/lockstep DESTINATION ${CMAKE_INSTALL_DATAROOTDIR})

# Man pages and completions, where systems look for them.
foreach(_folder IN ITEMS man bash-completion zsh fish)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/share/${_folder} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR})
endforeach()

# The font inside liblockstep comes with its terms.
if(EXISTS /usr/share/doc/fonts-dejavu-core/copyright)
  install(FILES /usr/share/doc/fonts-dejavu-core/copyright
    DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME DejaVuSans-copyright.txt)
endif()

# The exported target names Libtorch::cpu, which the package's configuration finds where it is used.
install(EXPORT LockstepTargets NAMESPACE Lockstep:: DESTINATION ${_package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/LockstepConfig.cmake.in
  ${PROJECT_BINARY_DIR}/LockstepConfig.cmake INSTALL_DESTINATION ${_package_dir}
  PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/LockstepConfig.cmake
  ${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FindLibtorch.cmake
  DESTINATION ${_package_dir})
