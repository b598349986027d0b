# SPDX-License-Identifier: Apache-2.0

# libnccl-net-pccl.so, by which NCCL sends over PCCL's sockets (docs/guide/nccl_plugin.md). It holds all of
# PCCL that it needs, and no symbol of NCCL. Tests link what is in it as pccl_nccl.

file(GLOB nccl_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/nccl/*.cc)
list(FILTER nccl_sources EXCLUDE REGEX "/tables\\.cc$")
add_library(pccl_nccl STATIC ${nccl_sources})
target_link_libraries(pccl_nccl PUBLIC pccl_bootstrap pccl_transport)

add_library(nccl_net_pccl MODULE ${PROJECT_SOURCE_DIR}/plugins/nccl/tables.cc)
target_link_libraries(nccl_net_pccl PRIVATE pccl_nccl)
target_link_options(
  nccl_net_pccl
  PRIVATE
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/plugins/nccl/plugin.map
    # NCCL unloads a plug-in that no communicator uses; state and handlers of fork() stay valid.
    -Wl,-z,nodelete
)
if(NOT PCCL_SANITIZE)
  target_link_options(nccl_net_pccl PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(
  nccl_net_pccl PROPERTIES PREFIX lib OUTPUT_NAME nccl-net-pccl
                           LIBRARY_OUTPUT_DIRECTORY ${PCCL_PACKAGE_DIR}
)
install(TARGETS nccl_net_pccl LIBRARY DESTINATION pccl COMPONENT python EXCLUDE_FROM_ALL)
