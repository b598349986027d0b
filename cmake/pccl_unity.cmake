# Wheels are compiled with CMAKE_UNITY_BUILD (pyproject.toml): files of one folder together, so that
# headers are read, and what is inline in them is compiled, once for all of these. Developers compile
# file by file. What a file defines in an anonymous namespace has a name that no other file of its
# folder defines there (tools/check_names.py).

# pccl_unity_groups(<target> <most> <sources...>): at most so many files of a folder together.
function(pccl_unity_groups TARGET MOST)
  set_target_properties(${TARGET} PROPERTIES UNITY_BUILD_MODE GROUP)
  list(FILTER ARGN INCLUDE REGEX "\\.cc$")
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/csrc)
    string(REPLACE "/" "_" folder ${folder})
    list(LENGTH files_of_${folder} before)
    math(EXPR part "${before} / ${MOST}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${part})
    list(APPEND files_of_${folder} ${source})
  endforeach()
endfunction()
