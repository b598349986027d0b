# SPDX-License-Identifier: Apache-2.0

# Language, warnings, visibility and sanitizers for everything of ours: the interface target pccl_flags.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(PCCL_PACKAGE_DIR ${PROJECT_BINARY_DIR}/python/pccl)

find_program(PCCL_CCACHE ccache)
if(PCCL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Builds in different folders (dev tree, wheel) and of different clones share their objects.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_ctime,include_file_mtime ${PCCL_CCACHE}
  )
endif()

add_library(pccl_flags INTERFACE)
# Public headers are spelled <pccl/x.h>, all others "csrc/...".
target_include_directories(pccl_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
target_compile_options(
  pccl_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wconversion>
)

# What is shipped names no folder of the machine that built it. Developers' builds do, for debuggers.
function(pccl_without_path TARGET PATH NAME)
  if(PCCL_DEVELOPER OR NOT PATH)
    return()
  endif()
  set(maps -ffile-prefix-map=${PATH}=${NAME})
  if(PCCL_CCACHE AND PATH MATCHES "^${PROJECT_SOURCE_DIR}/") # as .venv: by CCACHE_BASEDIR, relative
    file(RELATIVE_PATH from_build ${CMAKE_BINARY_DIR} ${PATH})
    list(APPEND maps -ffile-prefix-map=${from_build}=${NAME})
  endif()
  foreach(map IN LISTS maps)
    target_compile_options(
      ${TARGET} INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${map}>
                          $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${map}>
    )
  endforeach()
endfunction()
pccl_without_path(pccl_flags ${PROJECT_SOURCE_DIR} pccl)
if(PCCL_DEVELOPER)
  target_compile_options(pccl_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  target_compile_definitions(pccl_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()
if(PCCL_SANITIZE)
  target_compile_options(
    pccl_flags INTERFACE -fsanitize=${PCCL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
  )
  target_link_options(pccl_flags INTERFACE -fsanitize=${PCCL_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # False alarms in the standard library's <regex> (GCC bug 105562) and <variant>.
    target_compile_options(pccl_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  if(PCCL_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Fences are not modelled; the doorbell's does not order data that threads of one process share.
    target_compile_options(pccl_flags INTERFACE -Wno-tsan)
  endif()
endif()

# A wheel runs on every x86-64-v2 machine. Faster instruction sets live in files of their own, named
# for them, which the code enters only after asking the CPU: kernels_avx2.cc, kernels_avx512.cc, with
# kernels_baseline.cc for the rest. All levels round alike, hence no contraction into fused operations.
string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" PCCL_ARCH)
if(PCCL_ARCH MATCHES "^(x86_64|amd64)$")
  set(PCCL_IS_X86 ON)
  target_compile_options(
    pccl_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=${PCCL_X86_BASELINE}>
  )
endif()
set(PCCL_FLAGS_baseline -O3 -ffp-contract=off -fno-trapping-math)
set(PCCL_FLAGS_avx2 ${PCCL_FLAGS_baseline} -mavx2 -mfma -mf16c)
set(PCCL_FLAGS_avx512 ${PCCL_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)

# Gives each *_baseline.cc, *_avx2.cc and *_avx512.cc in the list named by SOURCES its flags. On another
# architecture than x86-64, takes the latter two off the list.
function(pccl_instruction_set_files SOURCES)
  set(kept ${${SOURCES}})
  foreach(isa baseline avx2 avx512)
    set(files ${kept})
    list(FILTER files INCLUDE REGEX "_${isa}\\.cc$")
    if((PCCL_IS_X86 OR isa STREQUAL "baseline") AND files)
      set_source_files_properties(
        ${files} PROPERTIES COMPILE_OPTIONS "${PCCL_FLAGS_${isa}}" SKIP_PRECOMPILE_HEADERS ON
      )
    elseif(files)
      list(REMOVE_ITEM kept ${files})
    endif()
  endforeach()
  set(${SOURCES} ${kept} PARENT_SCOPE)
endfunction()
