# Arrow and Parquet as the Python package pyarrow brings them: headers, and libraries with their version behind
# .so. Looks beside libtorch (Libtorch_SITE_PACKAGES) and where Libtorch_PYTHON imports it from.
# Out: PyArrow::parquet
set(_folder "${Libtorch_SITE_PACKAGES}/pyarrow")
if(NOT EXISTS "${_folder}/include/arrow/api.h" AND Libtorch_PYTHON)
  execute_process(COMMAND "${Libtorch_PYTHON}" -c "import pyarrow, os; print(os.path.dirname(pyarrow.__file__))"
    OUTPUT_VARIABLE _folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(GLOB PyArrow_ARROW_LIBRARY "${_folder}/libarrow.so.*")
file(GLOB PyArrow_PARQUET_LIBRARY "${_folder}/libparquet.so.*")
find_path(PyArrow_INCLUDE_DIR arrow/api.h PATHS "${_folder}/include" NO_DEFAULT_PATH)
mark_as_advanced(PyArrow_INCLUDE_DIR)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PyArrow
  REQUIRED_VARS PyArrow_PARQUET_LIBRARY PyArrow_ARROW_LIBRARY PyArrow_INCLUDE_DIR)
if(PyArrow_FOUND AND NOT TARGET PyArrow::parquet)
  list(GET PyArrow_ARROW_LIBRARY 0 _arrow)
  list(GET PyArrow_PARQUET_LIBRARY 0 _parquet)
  add_library(PyArrow::parquet INTERFACE IMPORTED)
  target_include_directories(PyArrow::parquet SYSTEM INTERFACE "${PyArrow_INCLUDE_DIR}")
  target_link_libraries(PyArrow::parquet INTERFACE "${_parquet}" "${_arrow}")
endif()
