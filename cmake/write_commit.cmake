# cmake -DSOURCE=.. -DOUTPUT=.. -P write_commit.cmake: the commit of this tree as a header, written only when
# it changed.
find_program(_git git NO_CACHE)
set(_commit "")
if(_git)
  execute_process(COMMAND ${_git} -C "${SOURCE}" describe --always --dirty --abbrev=12 "--exclude=*"
    OUTPUT_VARIABLE _commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT _commit)
  set(_commit "unknown commit")
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#pragma once\n#define LOCKSTEP_COMMIT \"${_commit}\"\n")
