# SPDX-License-Identifier: Apache-2.0

# Net plug-ins of NCCL's ABI that accept nothing but what it permits: libnccl-net-strict.so has the tables of all
# versions, libnccl-net-strict_v<version>.so one each. They stay loaded (nodelete), as the library keeps plug-ins.
include_guard()
file(GLOB strict CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fakes/netplugin/*.cc)
function(pccl_strict_net_plugin suffix)
  set(target pccl_strict_net_plugin${suffix})
  add_library(${target} MODULE ${strict})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE pccl_flags)
  target_link_options(${target} PRIVATE -Wl,-z,nodelete)
  target_compile_definitions(${target} PRIVATE ${ARGN})
  set_target_properties(
    ${target} PROPERTIES OUTPUT_NAME nccl-net-strict${suffix} CXX_VISIBILITY_PRESET default
                         LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fakes/netplugin
  )
  set_property(GLOBAL APPEND PROPERTY PCCL_STRICT_NET_PLUGINS ${target})
endfunction()
pccl_strict_net_plugin("")
foreach(version RANGE 6 12)
  pccl_strict_net_plugin(_v${version} PCCL_TEST_NET_VERSION=${version})
endforeach()
get_property(strict_net_plugins GLOBAL PROPERTY PCCL_STRICT_NET_PLUGINS)

# Drives any plug-in as NCCL does (tests/netplugin/README.md): build/dev/net_harness FILE.
set(of_harness ${PROJECT_SOURCE_DIR}/tests/netplugin)
add_executable(
  net_harness ${of_harness}/harness.cc ${of_harness}/cases.cc ${of_harness}/measure.cc
              ${of_harness}/meeting.cc ${of_harness}/side.cc
)
target_link_libraries(net_harness PRIVATE pccl_sys)
foreach(version RANGE 6 12)
  set(name net_harness_v${version})
  add_test(NAME ${name} COMMAND net_harness $<TARGET_FILE:pccl_strict_net_plugin_v${version}>)
  set_tests_properties(
    ${name} PROPERTIES TIMEOUT 300 LABELS cpu ENVIRONMENT
                                              "PCCL_TEST_NET_PLUGIN=seed=${version}$<COMMA>null=30"
  )
endforeach()
