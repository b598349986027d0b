# SPDX-License-Identifier: Apache-2.0

# pccl_module(NAME <module> DEPS <modules...> [LIBRARIES <targets...>])
#
# Declares csrc/<module> as the static library pccl_<module> of all its .cc files (with CUDA, its .cu files
# too), linked to the modules it may use. A module without sources is a header-only (INTERFACE) library.
# x_cuda.cc is left out without CUDA, and x_no_cuda.cc, which stands in for it, is left out with CUDA.
# Folders named verbs are left out where rdma-core's headers are missing. Without librdmacm's,
# x_no_rdmacm.cc stands in for x.cc, and librdmacm.cc is left out.
# LIBRARIES are third-party targets. C++ tests link modules, so that they reach what libpccl.so hides.

function(pccl_module)
  cmake_parse_arguments(MODULE "" "NAME" "DEPS;LIBRARIES" ${ARGN})
  set(target pccl_${MODULE_NAME})
  list(TRANSFORM MODULE_DEPS PREPEND pccl_)

  set(patterns ${PROJECT_SOURCE_DIR}/csrc/${MODULE_NAME}/*.cc)
  if(PCCL_WITH_CUDA)
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/csrc/${MODULE_NAME}/*.cu)
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
  if(PCCL_WITH_CUDA)
    list(FILTER sources EXCLUDE REGEX "_no_cuda\\.cc$")
  else()
    list(FILTER sources EXCLUDE REGEX "_cuda\\.cc$")
    file(GLOB_RECURSE stand_ins CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/csrc/${MODULE_NAME}/*_no_cuda.cc)
    list(APPEND sources ${stand_ins})
  endif()
  if(NOT PCCL_WITH_VERBS)
    list(FILTER sources EXCLUDE REGEX "/verbs/")
  elseif(PCCL_WITH_RDMACM)
    list(FILTER sources EXCLUDE REGEX "_no_rdmacm\\.cc$")
  else()
    list(FILTER sources EXCLUDE REGEX "/(connection_manager|librdmacm)\\.cc$")
  endif()
  pccl_instruction_set_files(sources)

  if(sources)
    if(PCCL_UNITY_BUILD)
      pccl_unity_groups(sources 16)
    endif()
    add_library(${target} STATIC ${sources})
    pccl_precompile_module(${target})
    target_link_libraries(${target} PUBLIC pccl_flags ${MODULE_DEPS} ${MODULE_LIBRARIES})
    set_property(GLOBAL APPEND PROPERTY PCCL_MODULE_OBJECTS $<TARGET_OBJECTS:${target}>)
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE pccl_flags ${MODULE_DEPS} ${MODULE_LIBRARIES})
  endif()
  set_property(GLOBAL APPEND PROPERTY PCCL_MODULE_LIBRARIES ${MODULE_LIBRARIES})
endfunction()
