# SPDX-License-Identifier: Apache-2.0

# libplugin_PCCL.so, by which NIXL's agents reach each other over sessions (docs/guide/nixl.md). It
# holds all of PCCL that it needs, and no symbol of NIXL: it works with every NIXL from 1.0 on.

# Where nothing else is said, those of tools/setup_nixl.sh, for the tests.
set(nixl ${PROJECT_SOURCE_DIR}/build/nixl/src)
if(NOT PCCL_NIXL_INCLUDE AND PCCL_BUILD_TESTS AND EXISTS ${nixl}/api/cpp/backend)
  set(PCCL_NIXL_INCLUDE ${nixl}/api/cpp ${nixl}/core/telemetry ${nixl}/utils)
endif()
if(NOT PCCL_NIXL_INCLUDE)
  return()
endif()

file(GLOB nixl_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/nixl/*.cc)
add_library(plugin_PCCL MODULE ${nixl_sources})
target_compile_definitions(plugin_PCCL PRIVATE PCCL_VERSION="${PCCL_VERSION}")
target_include_directories(plugin_PCCL BEFORE PRIVATE ${PROJECT_SOURCE_DIR}/plugins/nixl/include)
target_include_directories(plugin_PCCL SYSTEM PRIVATE ${PCCL_NIXL_INCLUDE})
target_link_libraries(plugin_PCCL PRIVATE pccl_p2p)
target_link_options(
  plugin_PCCL PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/plugins/nixl/plugin.map
)
if(NOT PCCL_SANITIZE)
  target_link_options(plugin_PCCL PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(plugin_PCCL PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PCCL_PACKAGE_DIR})
install(TARGETS plugin_PCCL LIBRARY DESTINATION pccl COMPONENT python EXCLUDE_FROM_ALL)
