# SPDX-License-Identifier: Apache-2.0

# What C++ programs of others build against: cmake --install <build> --prefix <prefix>, then
# find_package(pccl) and target_link_libraries(... pccl::pccl).

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(
  DIRECTORY ${PROJECT_SOURCE_DIR}/include/pccl
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development
  FILES_MATCHING
  PATTERN "*.h"
)
target_include_directories(pccl INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
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
