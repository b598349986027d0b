# SPDX-License-Identifier: Apache-2.0

# What C++ programs of others build against: cmake --install <build> --prefix <prefix>, then
# find_package(pccl) and target_link_libraries(... pccl::pccl).

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# pccl_reached_headers(<variable> <headers...>): these, and all of csrc/ that they include.
function(pccl_reached_headers variable)
  set(waiting ${ARGN})
  set(reached "")
  while(waiting)
    list(POP_FRONT waiting header)
    if(header IN_LIST reached)
      continue()
    endif()
    list(APPEND reached ${header})
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^#include \"csrc/")
    list(TRANSFORM lines REPLACE "^#include \"([^\"]+)\".*" "\\1")
    list(APPEND waiting ${lines})
  endwhile()
  set(${variable} ${reached} PARENT_SCOPE)
endfunction()

pccl_reached_headers(
  headers csrc/base/bytes.h csrc/bootstrap/open_store.h csrc/cluster/cluster_context.h
  csrc/cluster/file/cluster_file.h csrc/cluster/model/links.h csrc/comm/communicator.h
  csrc/comm/memory_context.h csrc/comm/operator.h csrc/p2p/session.h
)
foreach(header IN LISTS headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/pccl/${folder} COMPONENT development)
endforeach()
# A header that includes others from now on asks for another look.
list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})

target_include_directories(pccl INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/pccl>)
target_compile_features(pccl INTERFACE cxx_std_20)
install(
  TARGETS pccl
  EXPORT pccl_targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/pccl)
install(
  EXPORT pccl_targets
  FILE pcclTargets.cmake
  NAMESPACE pccl::
  DESTINATION ${package}
  COMPONENT development
)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/pcclConfig.cmake.in ${PROJECT_BINARY_DIR}/pcclConfig.cmake
  INSTALL_DESTINATION ${package}
)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/pcclConfigVersion.cmake
  VERSION ${PCCL_VERSION}
  COMPATIBILITY SameMinorVersion
)
install(
  FILES ${PROJECT_BINARY_DIR}/pcclConfig.cmake ${PROJECT_BINARY_DIR}/pcclConfigVersion.cmake
  DESTINATION ${package}
  COMPONENT development
)
