# lockstep_proto(NAME FILE.proto): messages for the folder src/lockstep/NAME, included there as
# "lockstep/NAME/FILE.pb.h". The folder must not see libtorch's include path: the wheel brings
# headers of another version of protobuf.
find_package(Protobuf REQUIRED)

function(lockstep_proto name file)
  set(root ${PROJECT_BINARY_DIR}/proto)
  string(REGEX REPLACE "\\.proto$" "" stem ${file})
  set(made ${root}/lockstep/${name}/${stem}.pb)
  file(MAKE_DIRECTORY ${root})
  add_custom_command(OUTPUT ${made}.cc ${made}.h
    COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR}/src --cpp_out=${root} lockstep/${name}/${file}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file} VERBATIM)
  set_source_files_properties(${made}.cc PROPERTIES COMPILE_OPTIONS -w)
  target_sources(lockstep_${name} PRIVATE ${made}.cc ${made}.h)
  target_include_directories(lockstep_${name} SYSTEM PRIVATE ${root})
  target_link_libraries(lockstep_${name} PRIVATE protobuf::libprotobuf-lite)
endfunction()
