# pccl_room(NAME <room> DEPS <rooms...> [LIBRARIES <targets...>])
#
# Declares csrc/<room> as the static library pccl_<room> of all its .cc files (with CUDA, its .cu files
# too), linked to the rooms it may use. A room without sources is a header-only (INTERFACE) library.
# x_cuda.cc is left out without CUDA, and x_no_cuda.cc, which stands in for it, is left out with CUDA.
# LIBRARIES are third-party targets. C++ tests link rooms, so that they reach what libpccl.so hides.

function(pccl_room)
  cmake_parse_arguments(ROOM "" "NAME" "DEPS;LIBRARIES" ${ARGN})
  set(target pccl_${ROOM_NAME})
  list(TRANSFORM ROOM_DEPS PREPEND pccl_)

  set(patterns ${PROJECT_SOURCE_DIR}/csrc/${ROOM_NAME}/*.cc)
  if(PCCL_WITH_CUDA)
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/csrc/${ROOM_NAME}/*.cu)
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
  if(PCCL_WITH_CUDA)
    list(FILTER sources EXCLUDE REGEX "_no_cuda\\.cc$")
  else()
    list(FILTER sources EXCLUDE REGEX "_cuda\\.cc$")
    file(GLOB_RECURSE stand_ins CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/csrc/${ROOM_NAME}/*_no_cuda.cc)
    list(APPEND sources ${stand_ins})
  endif()
  pccl_instruction_set_files(sources)

  if(sources)
    if(PCCL_UNITY_BUILD)
      pccl_unity_groups(sources 16)
    endif()
    add_library(${target} STATIC ${sources})
    pccl_precompile_room(${target})
    target_link_libraries(${target} PUBLIC pccl_flags ${ROOM_DEPS} ${ROOM_LIBRARIES})
    set_property(GLOBAL APPEND PROPERTY PCCL_ROOM_OBJECTS $<TARGET_OBJECTS:${target}>)
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE pccl_flags ${ROOM_DEPS} ${ROOM_LIBRARIES})
  endif()
  set_property(GLOBAL APPEND PROPERTY PCCL_ROOM_LIBRARIES ${ROOM_LIBRARIES})
endfunction()
