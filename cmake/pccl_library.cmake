# SPDX-License-Identifier: Apache-2.0

# libpccl.so: all modules, no torch. Only what PCCL_API marks is visible.

get_property(objects GLOBAL PROPERTY PCCL_MODULE_OBJECTS)
get_property(libraries GLOBAL PROPERTY PCCL_MODULE_LIBRARIES)
add_library(pccl SHARED ${objects})
target_link_libraries(pccl PRIVATE pccl_flags ${libraries})
target_include_directories(pccl INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_link_options(
  pccl
  PRIVATE
    # With this a static libcrypto (PCCL_DEPS_DIR) stays inside, too.
    -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/libpccl.map
)
if(NOT PCCL_SANITIZE)
  # A missing definition is an error here, not at import; sanitizer runtimes are resolved later.
  target_link_options(pccl PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(
  pccl
  PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PCCL_PACKAGE_DIR}
             BUILD_RPATH_USE_ORIGIN ON
             INSTALL_RPATH "$ORIGIN"
)
set_property(TARGET pccl APPEND PROPERTY LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/libpccl.map)
install(TARGETS pccl LIBRARY DESTINATION pccl COMPONENT python EXCLUDE_FROM_ALL)
