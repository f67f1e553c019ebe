# Decides whether the CUDA parts (liblockstep_cuda) are built, and with which compiler.
#
# Out: LOCKSTEP_WITH_CUDA, and the target Lockstep::cuda_headers (CUDA and NCCL headers, cudart).
# The headers come from the wheel's own dependencies, so only nvcc may be missing.
set(LOCKSTEP_WITH_CUDA OFF)
set(_why "")
file(GLOB _wheel_cuda_include "${Libtorch_SITE_PACKAGES}/nvidia/cu13/include")
file(GLOB _wheel_nccl_include "${Libtorch_SITE_PACKAGES}/nvidia/nccl/include")
set(LOCKSTEP_NVCC "$ENV{LOCKSTEP_NVCC}" CACHE FILEPATH "CUDA 13 compiler; empty: the first one found")

# Sets LOCKSTEP_NVCC to the first nvcc of CUDA 13; _why says what was found instead.
function(_lockstep_find_nvcc)
  find_program(_path_nvcc nvcc NO_CACHE)
  set(_why "no CUDA compiler: install CUDA 13.x, or let ./lockstep.sh build get one from PyPI")
  foreach(_nvcc IN ITEMS "${LOCKSTEP_NVCC}" "$ENV{CUDA_HOME}/bin/nvcc" "${_path_nvcc}"
          /usr/local/cuda/bin/nvcc "${Libtorch_SITE_PACKAGES}/nvidia/cu13/bin/nvcc")
    if(_nvcc AND EXISTS "${_nvcc}")
      execute_process(COMMAND "${_nvcc}" --version OUTPUT_VARIABLE _says ERROR_QUIET)
      if(_says MATCHES "release 13\\.")
        set(LOCKSTEP_NVCC "${_nvcc}" CACHE FILEPATH "" FORCE)
        return()
      endif()
      string(REGEX MATCH "release [0-9.]+" _release "${_says}")
      set(_why "${_nvcc} is of CUDA ${_release}, this torch needs 13.x")
    endif()
  endforeach()
  set(LOCKSTEP_NVCC "" CACHE FILEPATH "" FORCE)
  set(_why "${_why}" PARENT_SCOPE)
endfunction()

# The architectures of the GPUs in this machine, as CMake writes them.
function(_lockstep_native_architectures out)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE _caps RESULT_VARIABLE _failed ERROR_QUIET)
  string(REGEX MATCHALL "[0-9]+\\.[0-9]+" _caps "${_caps}")
  if(_failed OR NOT _caps)
    message(FATAL_ERROR "LOCKSTEP_CUDA_ARCHITECTURES=native needs a GPU in this machine (nvidia-smi shows none).")
  endif()
  list(REMOVE_DUPLICATES _caps)
  string(REPLACE "." "" _caps "${_caps}")
  list(TRANSFORM _caps APPEND "-real")
  set(${out} "${_caps}" PARENT_SCOPE)
endfunction()

if(LOCKSTEP_CUDA STREQUAL "OFF")
  set(_why "LOCKSTEP_CUDA is OFF")
elseif(NOT Libtorch_HAS_CUDA)
  set(_why "this libtorch is CPU-only (no libtorch_cuda.so)")
elseif(Libtorch_CUDA_VERSION AND NOT Libtorch_CUDA_VERSION MATCHES "^13\\.")
  set(_why "this torch is built for CUDA ${Libtorch_CUDA_VERSION}, the CUDA parts need 13.x: install the cu130 build of torch")
else()
  _lockstep_find_nvcc()
  if(LOCKSTEP_NVCC)
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
  elseif(LOCKSTEP_CUDA_ARCHITECTURES STREQUAL "native")
    _lockstep_native_architectures(CMAKE_CUDA_ARCHITECTURES)
  else()
    set(CMAKE_CUDA_ARCHITECTURES ${LOCKSTEP_CUDA_ARCHITECTURES})
  endif()
  # Attention needs what only 9.0 has; code for 90a runs on every GPU of 9.0.
  list(TRANSFORM CMAKE_CUDA_ARCHITECTURES REPLACE "^90(-|$)" "90a\\1")
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)
  get_filename_component(_toolkit "${LOCKSTEP_NVCC}" REALPATH)
  get_filename_component(_toolkit "${_toolkit}" DIRECTORY)
  get_filename_component(_toolkit "${_toolkit}" DIRECTORY)
  # CMake links a probe; the toolkit from PyPI has a folder lib where nvcc expects lib64.
  set(ENV{LIBRARY_PATH} "${_toolkit}/lib:$ENV{LIBRARY_PATH}")
  enable_language(CUDA)
  # The run-time library that libtorch_cuda itself uses, never a second one.
  find_library(LOCKSTEP_CUDART NAMES libcudart.so.13 cudart
    HINTS "${Libtorch_SITE_PACKAGES}/nvidia/cu13/lib" "${_toolkit}/lib64" REQUIRED)
  find_library(LOCKSTEP_CUBLASLT NAMES libcublasLt.so.13 cublasLt
    HINTS "${Libtorch_SITE_PACKAGES}/nvidia/cu13/lib" "${_toolkit}/lib64" REQUIRED)
  add_library(Lockstep::cuda_headers INTERFACE IMPORTED)
  set_target_properties(Lockstep::cuda_headers PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_wheel_nccl_include};${_wheel_cuda_include};${_toolkit}/include"
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${_wheel_nccl_include};${_wheel_cuda_include};${_toolkit}/include"
    INTERFACE_COMPILE_DEFINITIONS "USE_C10D_NCCL"
    INTERFACE_LINK_LIBRARIES "${LOCKSTEP_CUDART}")
  message(STATUS "CUDA parts: yes, ${LOCKSTEP_NVCC}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
elseif(LOCKSTEP_CUDA STREQUAL "ON")
  message(FATAL_ERROR "CUDA parts were asked for (LOCKSTEP_CUDA=ON) but cannot be built: ${_why}")
else()
  message(STATUS "CUDA parts: no (${_why}). Programs run on the CPU and say so.")
endif()
