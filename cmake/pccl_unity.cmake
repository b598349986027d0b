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
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER ${folder} folder)
    list(LENGTH files_of_${folder} before)
    math(EXPR part "${before} / ${MOST}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${part})
    list(APPEND files_of_${folder} ${source})
  endforeach()
endfunction()

# What nearly all files of the rooms include. Read file by file it takes a third of a small one.
set(PCCL_COMMON_HEADERS
    <algorithm>
    <array>
    <atomic>
    <chrono>
    <functional>
    <map>
    <memory>
    <mutex>
    <optional>
    <ranges>
    <span>
    <string>
    <string_view>
    <utility>
    <vector>
)

# pccl_precompile(<target> <headers...>), for ccache, too.
function(pccl_precompile TARGET)
  target_precompile_headers(${TARGET} ${ARGN})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${TARGET} PRIVATE -fpch-preprocess)
  endif()
endfunction()

# pccl_precompile_room(<target>): the common headers, in wheels. Developers see what a file forgot to
# include.
function(pccl_precompile_room TARGET)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  get_property(first GLOBAL PROPERTY PCCL_FIRST_PRECOMPILED)
  if(first)
    pccl_precompile(${TARGET} REUSE_FROM ${first})
  else()
    set_property(GLOBAL PROPERTY PCCL_FIRST_PRECOMPILED ${TARGET})
    pccl_precompile(${TARGET} PRIVATE ${PCCL_COMMON_HEADERS})
  endif()
endfunction()
