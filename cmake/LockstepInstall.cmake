# What `cmake --install` copies: programs, libraries, public headers, CMake package, documents, licences.
include(CMakePackageConfigHelpers)
include(LockstepTorchFile)
set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep)

install(TARGETS lockstep_shared EXPORT LockstepTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS lockstep lockstep-plot lockstep-board lockstep-stack lockstep-prepare lockstep-worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(LOCKSTEP_WITH_CUDA)
  install(TARGETS lockstep_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# Files that programs look for in ../share/lockstep, and the guides' scripts.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/lockstep DESTINATION ${CMAKE_INSTALL_DATAROOTDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/scripts DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/lockstep
  USE_SOURCE_PERMISSIONS)

# Man pages and completions, where systems look for them.
foreach(_folder IN ITEMS man bash-completion zsh fish)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/share/${_folder} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR})
endforeach()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/README.zh-CN.md ${PROJECT_SOURCE_DIR}/ARCHITECTURE.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The terms of what is inside the programs and the library: headers, a font, and what packages carry or link statically.
# Name of the Debian package that holds the text = name of the installed file.
set(_licences fonts-dejavu-core libfmt-dev nlohmann-json3-dev libstb-dev libjs-dygraphs gemmi-dev tao-pegtl-dev libyaml-cpp-dev
  libprotobuf-dev libpng-dev libjpeg-dev libjpeg62-turbo-dev libgif-dev zlib1g-dev libisal-dev libssl-dev libpcre2-dev
  libutf8proc-dev libhdf5-dev libaec-dev)
foreach(_package IN LISTS _licences)
  if(EXISTS /usr/share/doc/${_package}/copyright)
    file(REAL_PATH /usr/share/doc/${_package}/copyright _text)
    install(FILES ${_text} DESTINATION ${CMAKE_INSTALL_DOCDIR}/licenses RENAME ${_package}.txt)
  endif()
endforeach()

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
