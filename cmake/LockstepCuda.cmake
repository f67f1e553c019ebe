# Decides whether the CUDA parts (liblockstep_cuda) are built, and with which compiler.
#
# Out: LOCKSTEP_WITH_CUDA, and the target Lockstep::cuda_headers (CUDA and NCCL headers).
# The headers come from the wheel's own dependencies, so only nvcc may be missing.
set(LOCKSTEP_WITH_CUDA OFF)
set(_why "")
file(GLOB _wheel_cuda_include "${Libtorch_SITE_PACKAGES}/nvidia/cu13/include")
file(GLOB _wheel_nccl_include "${Libtorch_SITE_PACKAGES}/nvidia/nccl/include")
find_program(LOCKSTEP_NVCC nvcc HINTS "$ENV{LOCKSTEP_NVCC_DIR}" "${Libtorch_SITE_PACKAGES}/nvidia/cu13/bin"
  "$ENV{CUDA_HOME}/bin" /usr/local/cuda/bin)
if(LOCKSTEP_CUDA STREQUAL "OFF")
  set(_why "LOCKSTEP_CUDA is OFF")
elseif(NOT Libtorch_HAS_CUDA)
  set(_why "this libtorch is CPU-only (no libtorch_cuda.so)")
elseif(NOT LOCKSTEP_NVCC)
  set(_why "no CUDA compiler: install CUDA 13.x, or nvidia-cuda-nvcc 13.0 from PyPI (./lockstep.sh build does)")
else()
  execute_process(COMMAND ${LOCKSTEP_NVCC} --version OUTPUT_VARIABLE _nvcc_says ERROR_QUIET)
  string(REGEX MATCH "release ([0-9]+)\\.([0-9]+)" _ "${_nvcc_says}")
  if(NOT CMAKE_MATCH_1 STREQUAL "13")
    set(_why "${LOCKSTEP_NVCC} is CUDA ${CMAKE_MATCH_1}.${CMAKE_MATCH_2}, the wheel needs 13.x")
  else()
    set(LOCKSTEP_WITH_CUDA ON)
  endif()
endif()

if(LOCKSTEP_WITH_CUDA)
  set(CMAKE_CUDA_COMPILER ${LOCKSTEP_NVCC})
  # nvcc 13.0 does not accept clang 19 as its host compiler; g++ is always there.
  find_program(LOCKSTEP_CUDA_HOST NAMES g++ g++-12 g++-13)
  set(CMAKE_CUDA_HOST_COMPILER ${LOCKSTEP_CUDA_HOST})
  if(LOCKSTEP_CUDA_ARCHITECTURES STREQUAL "wheel")
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 90-real 100-real 120)
  else()
    set(CMAKE_CUDA_ARCHITECTURES ${LOCKSTEP_CUDA_ARCHITECTURES})
  endif()
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)
  enable_language(CUDA)
  get_filename_component(_toolkit "${LOCKSTEP_NVCC}" REALPATH)
  get_filename_component(_toolkit "${_toolkit}" DIRECTORY)
  get_filename_component(_toolkit "${_toolkit}" DIRECTORY)
  add_library(Lockstep::cuda_headers INTERFACE IMPORTED)
  set_target_properties(Lockstep::cuda_headers PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_wheel_nccl_include};${_wheel_cuda_include};${_toolkit}/include"
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${_wheel_nccl_include};${_wheel_cuda_include};${_toolkit}/include"
    INTERFACE_COMPILE_DEFINITIONS "USE_C10D_NCCL")
  message(STATUS "CUDA parts: yes, ${LOCKSTEP_NVCC}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
elseif(LOCKSTEP_CUDA STREQUAL "ON")
  message(FATAL_ERROR "CUDA parts were asked for (LOCKSTEP_CUDA=ON) but cannot be built: ${_why}")
else()
  message(STATUS "CUDA parts: no (${_why}). Programs run on the CPU and say so.")
endif()
