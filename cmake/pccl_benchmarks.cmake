# SPDX-License-Identifier: Apache-2.0

# benchmarks/cpp: a Google Benchmark program for each file, where the library is there. They are built
# with the tests, so that they stay in step with the code.

find_package(benchmark QUIET)
if(NOT benchmark_FOUND)
  message(STATUS "benchmarks/cpp is not built: Google Benchmark is missing (libbenchmark-dev)")
  return()
endif()
file(GLOB benchmarks CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/benchmarks/cpp/*.cc)
foreach(source IN LISTS benchmarks)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE pccl_comm benchmark::benchmark)
endforeach()
