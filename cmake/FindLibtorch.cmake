# Finds libtorch in a PyTorch wheel or a libtorch folder, without PyTorch's own CMake
# package (that one needs a CUDA toolkit, and fails where nvcc is installed and no GPU is).
#
# In:  LOCKSTEP_TORCH (cache or environment): a folder "torch" of a wheel, a virtual
#      environment that holds one, or an unpacked libtorch.
# Out: Libtorch::cpu  headers, libtorch_cpu and libc10: all a CPU program needs.
#      Libtorch::cuda libtorch_cuda and libc10_cuda, where the wheel has them.
#      Libtorch_ROOT_DIR, Libtorch_VERSION, Libtorch_SITE_PACKAGES, Libtorch_HAS_CUDA.
#      Libtorch_BUILD ("2.11.0+cu130"), Libtorch_CUDA_VERSION ("13.0"; empty: a CPU build).
#      Libtorch_PYTHON: a python3 that imports this torch (LOCKSTEP_PYTHON, the one of its
#      virtual environment, or that of the path); empty where there is none.
set(LOCKSTEP_TORCH "$ENV{LOCKSTEP_TORCH}" CACHE PATH "PyTorch wheel folder, virtual environment or libtorch")
if(NOT LOCKSTEP_TORCH)
  set(_cache "$ENV{LOCKSTEP_CACHE}")
  if(NOT _cache)
    set(_cache "$ENV{HOME}/.cache/lockstep")
  endif()
  set(LOCKSTEP_TORCH "${_cache}/torch-2.11.0" CACHE PATH "" FORCE)
endif()

file(GLOB _candidates "${LOCKSTEP_TORCH}" "${LOCKSTEP_TORCH}/torch"
     "${LOCKSTEP_TORCH}/lib/python3*/site-packages/torch"
     "${LOCKSTEP_TORCH}/lib/python3*/dist-packages/torch")
set(Libtorch_ROOT_DIR "Libtorch_ROOT_DIR-NOTFOUND")
foreach(_candidate IN LISTS _candidates)
  if(EXISTS "${_candidate}/include/torch/headeronly/version.h")
    set(Libtorch_ROOT_DIR "${_candidate}")
    break()
  endif()
endforeach()
if(NOT Libtorch_ROOT_DIR)
  message(FATAL_ERROR "No libtorch in '${LOCKSTEP_TORCH}'. Run ./lockstep.sh build, which installs "
    "torch 2.11.0, or set LOCKSTEP_TORCH to a torch 2.11 wheel folder or libtorch.")
endif()

file(STRINGS "${Libtorch_ROOT_DIR}/include/torch/headeronly/version.h" _lines
     REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" _numbers "${_lines}")
string(REPLACE ";" "." Libtorch_VERSION "${_numbers}")
if(NOT Libtorch_VERSION MATCHES "^2\\.11\\.")
  message(FATAL_ERROR "libtorch in '${Libtorch_ROOT_DIR}' is version ${Libtorch_VERSION}; Lockstep needs "
    "2.11.x (it uses c10d's internal interfaces, which change with every minor version). "
    "Unset LOCKSTEP_TORCH to let ./lockstep.sh install 2.11.0.")
endif()

# A wheel has version.py, an unpacked libtorch build-version.
set(Libtorch_BUILD "${Libtorch_VERSION}")
set(Libtorch_CUDA_VERSION "")
if(EXISTS "${Libtorch_ROOT_DIR}/version.py")
  file(STRINGS "${Libtorch_ROOT_DIR}/version.py" _line REGEX "^__version__ = ")
  string(REGEX REPLACE "^[^']*'([^']*)'.*$" "\\1" Libtorch_BUILD "${_line}")
  file(STRINGS "${Libtorch_ROOT_DIR}/version.py" _line REGEX "^cuda.*'")
  if(_line)
    string(REGEX REPLACE "^[^']*'([^']*)'.*$" "\\1" Libtorch_CUDA_VERSION "${_line}")
  endif()
elseif(EXISTS "${Libtorch_ROOT_DIR}/build-version")
  file(STRINGS "${Libtorch_ROOT_DIR}/build-version" Libtorch_BUILD)
  if(Libtorch_BUILD MATCHES "\\+cu([0-9]+)([0-9])$")
    set(Libtorch_CUDA_VERSION "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
  endif()
endif()

get_filename_component(Libtorch_SITE_PACKAGES "${Libtorch_ROOT_DIR}" DIRECTORY)
set(LOCKSTEP_PYTHON "$ENV{LOCKSTEP_PYTHON}" CACHE FILEPATH "python3 that imports this torch")
set(Libtorch_PYTHON "")
find_program(_path_python python3 NO_CACHE)
foreach(_python IN ITEMS "${LOCKSTEP_PYTHON}" "${Libtorch_SITE_PACKAGES}/../../../bin/python3" "${_path_python}")
  if(NOT Libtorch_PYTHON AND _python AND EXISTS "${_python}")
    execute_process(COMMAND "${_python}" -c
      "import importlib.util as u, os; print(os.path.realpath(os.path.dirname(u.find_spec('torch').origin)))"
      OUTPUT_VARIABLE _where OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    get_filename_component(_real "${Libtorch_ROOT_DIR}" REALPATH)
    if(_where STREQUAL _real OR (_where AND _python STREQUAL LOCKSTEP_PYTHON))
      get_filename_component(Libtorch_PYTHON "${_python}" ABSOLUTE)
    endif()
  endif()
endforeach()
set(_lib "${Libtorch_ROOT_DIR}/lib")
set(_include "${Libtorch_ROOT_DIR}/include" "${Libtorch_ROOT_DIR}/include/torch/csrc/api/include")

function(_libtorch_import name)
  if(NOT TARGET Libtorch::${name})
    add_library(Libtorch::${name} SHARED IMPORTED)
    set_target_properties(Libtorch::${name} PROPERTIES IMPORTED_LOCATION "${_lib}/lib${name}.so")
  endif()
endfunction()

# The CUDA wheel's libraries find each other by their own run path; the linker needs a hint.
file(GLOB _nvidia_libs "${Libtorch_SITE_PACKAGES}/nvidia/*/lib")
list(APPEND _nvidia_libs "${_lib}")
list(TRANSFORM _nvidia_libs PREPEND "-Wl,-rpath-link," OUTPUT_VARIABLE _rpath_link)

_libtorch_import(c10)
_libtorch_import(torch_cpu)
if(NOT TARGET Libtorch::cpu)
  add_library(Libtorch::cpu INTERFACE IMPORTED)
  set_target_properties(Libtorch::cpu PROPERTIES
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${_include}"
    INTERFACE_INCLUDE_DIRECTORIES "${_include}"
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO"
    # Newer clang mangles some of ATen's templates unlike the GCC that built libtorch.
    INTERFACE_COMPILE_OPTIONS
      "$<$<AND:$<COMPILE_LANG_AND_ID:CXX,Clang>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,18>>:-fclang-abi-compat=17>"
    INTERFACE_LINK_OPTIONS "${_rpath_link}"
    INTERFACE_LINK_LIBRARIES "Libtorch::torch_cpu;Libtorch::c10")
endif()

set(Libtorch_HAS_CUDA OFF)
if(EXISTS "${_lib}/libtorch_cuda.so")
  set(Libtorch_HAS_CUDA ON)
  _libtorch_import(c10_cuda)
  _libtorch_import(torch_cuda)
  if(NOT TARGET Libtorch::cuda)
    add_library(Libtorch::cuda INTERFACE IMPORTED)
    # Its registrations count, also where no symbol of it is named.
    set_target_properties(Libtorch::cuda PROPERTIES
      INTERFACE_LINK_OPTIONS "-Wl,--no-as-needed"
      INTERFACE_LINK_LIBRARIES "Libtorch::cpu;Libtorch::torch_cuda;Libtorch::c10_cuda")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libtorch REQUIRED_VARS Libtorch_ROOT_DIR VERSION_VAR Libtorch_VERSION)
if(Libtorch_PYTHON)
  set(LOCKSTEP_PYTHON "${Libtorch_PYTHON}" CACHE FILEPATH "" FORCE)
else()
  unset(LOCKSTEP_PYTHON CACHE)
  if(NOT Libtorch_FIND_QUIETLY)
    message(STATUS "Python with torch: none. Interop tests need one; LOCKSTEP_PYTHON can name it.")
  endif()
endif()
