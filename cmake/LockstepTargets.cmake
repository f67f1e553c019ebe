# lockstep_library(), lockstep_program() and lockstep_test(): one call per folder or test.

# One folder, one static library. PUBLIC are its headers in include/lockstep, which are installed. DEPS is
# all that the folder may include (tools/check_layers.py reads it here and checks every #include). A folder
# that names TORCH lies below the torch line. What a folder links, liblockstep links too.
function(lockstep_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "SOURCES;PUBLIC;DEPS;LINK")
  add_library(lockstep_${name} STATIC ${arg_SOURCES})
  target_include_directories(lockstep_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM arg_DEPS PREPEND lockstep_)
  target_link_libraries(lockstep_${name} PUBLIC lockstep_options ${arg_DEPS} PRIVATE ${arg_LINK})
  list(TRANSFORM arg_PUBLIC PREPEND ${PROJECT_SOURCE_DIR}/include/lockstep/)
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_PUBLIC_HEADERS ${arg_PUBLIC})
  if(arg_TORCH)
    target_link_libraries(lockstep_${name} PUBLIC Libtorch::cpu)
    lockstep_use_torch_pch(lockstep_${name})
  endif()
endfunction()

# Files that include torch headers share one precompiled header of third-party headers only.
function(lockstep_use_torch_pch target)
  target_precompile_headers(${target} REUSE_FROM lockstep_torch_pch)
endfunction()

# A program of this tree, which may use private code: it links the folders it names, a TORCH one all of them.
# Programs that use only the public headers link Lockstep::lockstep.
function(lockstep_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "SOURCES;DEPS;LINK")
  add_executable(${name} ${arg_SOURCES})
  if(arg_TORCH)
    target_link_libraries(${name} PRIVATE lockstep_internal ${arg_LINK})
    lockstep_use_torch_pch(${name})
  else()
    list(TRANSFORM arg_DEPS PREPEND lockstep_)
    target_link_libraries(${name} PRIVATE lockstep_options ${arg_DEPS} ${arg_LINK})
  endif()
endfunction()

# A GoogleTest program; each case becomes one ctest named LABEL.Suite.Case. SLOW ones are left
# out of `./lockstep.sh test --fast`.
function(lockstep_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;SLOW" "LABEL;TIMEOUT" "SOURCES;DEPS;LINK")
  if(arg_TORCH)
    lockstep_program(${name} TORCH SOURCES ${arg_SOURCES}
      LINK lockstep_test_main lockstep_test_seed ${arg_LINK})
  else()
    lockstep_program(${name} SOURCES ${arg_SOURCES} DEPS ${arg_DEPS} LINK lockstep_test_main ${arg_LINK})
  endif()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)  # Under two minutes alone, with room for a busy machine.
  endif()
  include(GoogleTest)
  # libgomp reads its variable while the program loads: lockstep_test_main comes too late for it.
  gtest_discover_tests(${name} TEST_PREFIX ${arg_LABEL}. DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} ENVIRONMENT OMP_WAIT_POLICY=PASSIVE)
  if(arg_SLOW)
    # gtest_discover_tests() cannot give a test two labels; a file that ctest reads after it can.
    set(labels ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
    file(WRITE ${labels}
      "foreach(test IN LISTS ${name}_TESTS)\n"
      "  set_tests_properties(\"\${test}\" PROPERTIES LABELS \"${arg_LABEL};slow\")\n"
      "endforeach()\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels})
  endif()
endfunction()
