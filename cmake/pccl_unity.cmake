# SPDX-License-Identifier: Apache-2.0

# Files of one folder are compiled together (PCCL_UNITY_BUILD, in wheels and developers' builds), so that
# headers are read, and what is inline in them is compiled, once for all of these. What a file defines in
# an anonymous namespace has a name that no other file of its folder defines there (tools/check_names.py);
# make lint compiles each file alone. The groups are made here and not by CMake, which names files by
# absolute paths, so that clones would share nothing in ccache.

# pccl_unity_groups(<variable> <most>): replaces C++ files of the list by files that include at most so
# many of a folder. Files with compile options of their own stay, and those that stand in for others: a
# test may link other stand-ins.
function(pccl_unity_groups SOURCES MOST)
  set(kept ${${SOURCES}})
  list(FILTER kept EXCLUDE REGEX "\\.cc$")
  set(together ${${SOURCES}})
  list(FILTER together INCLUDE REGEX "\\.cc$")
  set(groups "")
  foreach(source IN LISTS together)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    if(options OR source MATCHES "_no_cuda\\.cc$")
      list(APPEND kept ${source})
      continue()
    endif()
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE spelling)
    cmake_path(GET spelling PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER ${folder} folder)
    list(LENGTH files_of_${folder} before)
    list(APPEND files_of_${folder} ${source})
    math(EXPR part "${before} / ${MOST}")
    string(APPEND text_of_${folder}_${part} "#include \"${spelling}\"\n")
    list(APPEND groups ${folder}_${part})
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group IN LISTS groups)
    set(file ${PROJECT_BINARY_DIR}/unity/${group}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text_of_${group}}" @ONLY)
    list(APPEND kept ${file})
  endforeach()
  set(${SOURCES} ${kept} PARENT_SCOPE)
endfunction()

# What nearly all files of the modules include. Read file by file it takes a third of a small one.
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

# pccl_precompile_once(<target> <name> <headers...>): the first target that calls it with this name makes
# the precompiled headers, and the others use that target's. All of them have the same flags.
function(pccl_precompile_once TARGET NAME)
  get_property(first GLOBAL PROPERTY PCCL_PRECOMPILED_${NAME})
  if(first)
    pccl_precompile(${TARGET} REUSE_FROM ${first})
  else()
    set_property(GLOBAL PROPERTY PCCL_PRECOMPILED_${NAME} ${TARGET})
    pccl_precompile(${TARGET} PRIVATE ${ARGN})
  endif()
endfunction()

# pccl_precompile_module(<target>): the common headers, in builds of groups. Others show what a file forgot
# to include.
function(pccl_precompile_module TARGET)
  if(PCCL_UNITY_BUILD)
    pccl_precompile_once(${TARGET} MODULES ${PCCL_COMMON_HEADERS})
  endif()
endfunction()
