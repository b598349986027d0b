# SPDX-License-Identifier: Apache-2.0

# Every tests/fuzz/<name>_fuzzer.cc is a libFuzzer target of that name, with the modules it includes; its
# corpus is tests/fuzz/corpus/<name>. Needs clang.

if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "PCCL_BUILD_FUZZERS needs clang, which has libFuzzer: cmake --preset fuzz")
endif()
target_compile_options(pccl_flags INTERFACE -fsanitize=fuzzer-no-link)
file(GLOB fuzzers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzzer.cc)
foreach(source IN LISTS fuzzers)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  file(STRINGS ${source} includes REGEX "^#include \"csrc/")
  set(modules "")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^#include \"csrc/([^/]+)/.*" "pccl_\\1" module "${include}")
    list(APPEND modules ${module})
  endforeach()
  list(REMOVE_DUPLICATES modules)
  target_link_libraries(${name} PRIVATE ${modules})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  list(APPEND PCCL_FUZZERS ${name})
endforeach()
add_custom_target(fuzzers DEPENDS ${PCCL_FUZZERS})
