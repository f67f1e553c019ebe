# Language level, warnings, sanitizers, linker and compiler cache for our own code.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# For programs too: they share the precompiled header with the libraries.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fPIC>)
# Only what carries LOCKSTEP_EXPORT leaves liblockstep. For programs too, for the same reason.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
include(GNUInstallDirs)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR})
# One run path for the build tree and the installed programs. CMake would pad a run path that it
# rewrites while installing with empty entries, and an empty entry is the working directory: whoever
# can write there could plant a library.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
# Packages carry third-party libraries in lib/lockstep.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}" "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/lockstep")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

# Hardening. FORTIFY needs an optimising compiler and is blind to what sanitizers replace.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong>)
if(NOT LOCKSTEP_SANITIZE)
  add_compile_options("$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>")
endif()
add_link_options(-Wl,-z,relro,-z,now)

add_library(lockstep_options INTERFACE)
set(_warnings -Wall -Wextra -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Exported classes hold hidden ones behind pointers, and settings of hidden types.
  list(APPEND _warnings -Wno-attributes)
  # GCC 12 reports false positives of these inside its own std::string.
  list(APPEND _warnings -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-maybe-uninitialized)
  # A unity build includes sources, which GCC then takes for headers.
  if(CMAKE_UNITY_BUILD)
    list(APPEND _warnings -Wno-subobject-linkage)
  endif()
endif()
target_compile_options(lockstep_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${_warnings}>")
# NDEBUG in debug builds too: libtorch is built with it, and without it some of its classes have
# other members (at::RecordFunction).
target_compile_definitions(lockstep_options INTERFACE FMT_HEADER_ONLY=1 $<$<CONFIG:Debug>:NDEBUG>)
if(LOCKSTEP_SANITIZE)
  target_compile_options(lockstep_options INTERFACE
    -fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(lockstep_options INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
endif()

find_program(LOCKSTEP_MOLD mold)
if(LOCKSTEP_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# The sloppiness is what ccache needs to cache files that use a precompiled header;
# base dir and nohashdir let other clones of this repository hit the same entries.
find_program(LOCKSTEP_CCACHE ccache)
if(LOCKSTEP_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${LOCKSTEP_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Without this the precompiled header carries a time stamp and is never equal twice.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()
