# lib/lockstep/torch.json: the torch that the programs were linked with. The launcher and the CMake package read
# it; a package (tools/package) leaves the folder out.
set(_torch_file ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR}/lockstep/torch.json)
file(CONFIGURE OUTPUT ${_torch_file} CONTENT
  "{\"version\": \"${Libtorch_BUILD}\", \"cuda\": \"${Libtorch_CUDA_VERSION}\", \"folder\": \"${Libtorch_ROOT_DIR}\"}\n")
install(FILES ${_torch_file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/lockstep)
