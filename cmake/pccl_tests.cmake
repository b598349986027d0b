# SPDX-License-Identifier: Apache-2.0

# One GoogleTest executable per folder of tests/cpp, named pccl_<folder>_test and linked to that module;
# pccl_contract_test runs tests/contract against every transport. tests/fakes serves all of them.

find_package(GTest REQUIRED)

# Stands in for NVIDIA's library: opened by name, as that is.
add_library(fake_nvml MODULE ${PROJECT_SOURCE_DIR}/tests/fakes/nvml/fake_nvml.cc)
target_include_directories(fake_nvml PRIVATE ${PROJECT_SOURCE_DIR})

# Likewise libpmix, in the folder in which launchers have it (PMIX_PREFIX).
add_library(fake_pmix MODULE ${PROJECT_SOURCE_DIR}/tests/fakes/pmix/fake_pmix.cc)
target_link_libraries(fake_pmix PRIVATE pccl_flags)
set_target_properties(
  fake_pmix
  PROPERTIES PREFIX "" OUTPUT_NAME libpmix
             SUFFIX .so.2
             CXX_VISIBILITY_PRESET default
             LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fakes/pmix/lib
)

include(pccl_fake_verbs)
include(pccl_fake_net_plugin)

# In a file of its own, as no other then differs between clones (tests/fakes/places.h).
set(places ${PROJECT_BINARY_DIR}/tests/places.cc)
file(
  GENERATE
  OUTPUT ${places}
  CONTENT
    "#include \"tests/fakes/places.h\"

namespace pccl::fakes {

std::string in_tests(std::string_view file) {
    return std::string(\"${PROJECT_SOURCE_DIR}/tests/\").append(file);
}
std::string fake_nvml() { return \"$<TARGET_FILE:fake_nvml>\"; }
std::string strict_net_plugin() { return \"$<TARGET_FILE:pccl_strict_net_plugin>\"; }
std::string own_net_plugin() { return \"$<TARGET_FILE:nccl_net_pccl>\"; }
std::string fake_verbs() { return \"$<$<BOOL:${PCCL_WITH_VERBS}>:$<TARGET_FILE:pccl_fake_verbs>>\"; }

}  // namespace pccl::fakes
"
)
file(
  GLOB fakes CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fakes/*.cc
  ${PROJECT_SOURCE_DIR}/tests/fakes/loopback/*.cc
)
add_library(pccl_fakes STATIC ${fakes} ${places})
target_link_libraries(pccl_fakes PUBLIC pccl_comm pccl_device PRIVATE GTest::gtest)
add_dependencies(pccl_fakes fake_pmix nccl_net_pccl ${strict_net_plugins})

# pccl_compile_tests_quickly(<target>): GoogleTest's headers are read once, and what is compiled is code
# that runs once: the optimiser takes longer over it than it saves.
function(pccl_compile_tests_quickly TARGET)
  target_compile_options(${TARGET} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O1>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With -O1 it follows values through std::optional and std::string not far enough, and is wrong.
    target_compile_options(
      ${TARGET} PRIVATE -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow -Wno-restrict
    )
  endif()
  pccl_precompile_once(${TARGET} TESTS ${PCCL_COMMON_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
endfunction()

# Files of one folder are compiled so many at a time (pccl_unity.cmake), which takes a quarter less in all. More
# would save little, and an edit compiles a whole group: 20 s, 1 GB.
set(PCCL_TESTS_TOGETHER 8)

# pccl_run_test(<name> <target> <shards> <timeout> <slots> [<variable>=<value>...]) runs a target's tests in
# this environment.
function(pccl_run_test NAME TARGET SHARDS TIMEOUT SLOTS)
  math(EXPR last "${SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(name ${NAME})
    if(last GREATER 0)
      string(APPEND name _${shard})
    endif()
    add_test(NAME ${name} COMMAND ${TARGET})
    set(environment PCCL_COSTS_FILE=off GTEST_TOTAL_SHARDS=${SHARDS} GTEST_SHARD_INDEX=${shard} ${ARGN})
    set_tests_properties(
      ${name}
      PROPERTIES TIMEOUT ${TIMEOUT} PROCESSORS ${SLOTS} COST ${SHARDS} LABELS cpu
                 ENVIRONMENT "${environment}"
    )
  endforeach()
endfunction()

# pccl_test(NAME <name> FOLDER <folder> LIBRARIES <targets...> [SHARDS <count>] [TIMEOUT <seconds>]
#   [SLOTS <count>])
# What takes long runs in so many processes, <name>_0, <name>_1, ..., and first. Tests mostly wait for
# others, or for deadlines to pass: tools/test.sh runs two for each core. SLOTS is for how many of them
# one counts.
function(pccl_test)
  cmake_parse_arguments(TEST "" "NAME;FOLDER;SHARDS;TIMEOUT;SLOTS" "LIBRARIES" ${ARGN})
  if(NOT TEST_SHARDS)
    set(TEST_SHARDS 1)
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 600)
  endif()
  if(NOT TEST_SLOTS)
    set(TEST_SLOTS 1)
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${TEST_FOLDER}/*.cc)
  if(NOT PCCL_WITH_VERBS)
    list(FILTER sources EXCLUDE REGEX "verbs")
  endif()
  if(NOT sources)
    return()
  endif()
  if(PCCL_UNITY_BUILD)
    pccl_unity_groups(sources ${PCCL_TESTS_TOGETHER})
  endif()
  set(target pccl_${TEST_NAME}_test)
  add_executable(${target} ${sources})
  target_link_libraries(
    ${target} PRIVATE ${TEST_LIBRARIES} pccl_fakes GTest::gmock GTest::gtest_main
  )
  pccl_compile_tests_quickly(${target})
  pccl_run_test(${TEST_NAME} ${target} ${TEST_SHARDS} ${TEST_TIMEOUT} ${TEST_SLOTS})
endfunction()

set(shards_of_comm 4)
set(shards_of_schedule 2)
set(shards_of_p2p 2)
foreach(
  module
  base abi sys topo kernels schedule transport collective costs bootstrap runtime netconf capsule cluster
  device comm p2p
)
  pccl_test(
    NAME ${module} FOLDER ${PROJECT_SOURCE_DIR}/tests/cpp/${module} LIBRARIES pccl_${module}
    SHARDS ${shards_of_${module}}
  )
endforeach()
# Sessions over TCP once more, with lanes and helper threads whatever cores there are.
pccl_run_test(
  p2p_lanes pccl_p2p_test 1 600 1 PCCL_TCP_THREADS=3 "GTEST_FILTER=LanesTest.*:*tcp*"
)
add_dependencies(pccl_sys_test fake_nvml)
if(PCCL_WITH_VERBS)
  add_dependencies(pccl_fakes pccl_fake_verbs)
  if(PCCL_WITH_RDMACM)
    add_dependencies(pccl_fakes pccl_fake_rdmacm)
  endif()
  pccl_test(NAME fakes FOLDER ${PROJECT_SOURCE_DIR}/tests/cpp/fakes LIBRARIES pccl_fake_verbs)
endif()
pccl_test(NAME nccl FOLDER ${PROJECT_SOURCE_DIR}/tests/cpp/nccl LIBRARIES pccl_nccl)
pccl_test(NAME contract FOLDER ${PROJECT_SOURCE_DIR}/tests/contract LIBRARIES pccl_comm SHARDS 4)

# Fuzz targets need clang to fuzz (pccl_fuzz.cmake). Here each is a function of its own.
pccl_test(NAME fuzz FOLDER ${PROJECT_SOURCE_DIR}/tests/cpp/fuzz LIBRARIES pccl_comm pccl_p2p pccl_cluster pccl_nccl)
file(GLOB fuzzers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzzer.cc)
if(NOT PCCL_WITH_VERBS)
  list(FILTER fuzzers EXCLUDE REGEX "verbs")
endif()
set(listed "")
foreach(source IN LISTS fuzzers)
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "_fuzzer$" "" name ${name})
  set_source_files_properties(
    ${source} PROPERTIES COMPILE_DEFINITIONS LLVMFuzzerTestOneInput=pccl_fuzz_${name}
                         SKIP_PRECOMPILE_HEADERS ON # gmock's headers define another ::abi
  )
  string(APPEND listed "PCCL_FUZZER(${name})\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/fuzz/fuzzers.inc CONTENT "${listed}")
target_sources(pccl_fuzz_test PRIVATE ${fuzzers})
target_include_directories(pccl_fuzz_test PRIVATE ${PROJECT_BINARY_DIR}/fuzz)

# Kernels on the emulated GPU, compiled from the sources that nvcc compiles. They define what pccl_kernels
# does, so that the linker takes nothing of the like from there. CUDA's headers have the half types.
find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND)
  file(GLOB kernels CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} csrc/kernels/*.cu)
  set(emulated ${PROJECT_SOURCE_DIR}/tests/emulator/gpu.cc)
  foreach(kernel IN LISTS kernels)
    get_filename_component(name ${kernel} NAME_WE)
    set(source ${PROJECT_BINARY_DIR}/emulated/${name}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include <cuda_runtime.h>\n#include \"${kernel}\"\n")
    list(APPEND emulated ${source})
  endforeach()
  add_library(pccl_emulator OBJECT ${emulated})
  target_include_directories(
    pccl_emulator BEFORE PRIVATE ${PROJECT_SOURCE_DIR}/tests/emulator/include
  )
  target_include_directories(pccl_emulator SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_options(pccl_emulator PRIVATE -w)
  if(PCCL_SANITIZE)
    target_compile_definitions(pccl_emulator PRIVATE PCCL_SANITIZED)
  endif()
  if(PCCL_SANITIZE MATCHES "thread")
    # It tells ThreadSanitizer what its fibers do, and is none of their concern.
    set_source_files_properties(
      ${PROJECT_SOURCE_DIR}/tests/emulator/gpu.cc
      PROPERTIES COMPILE_OPTIONS "-fno-sanitize=thread;-DPCCL_THREAD_SANITIZER"
    )
  endif()
  target_link_libraries(pccl_emulator PRIVATE pccl_flags pccl_base)
  pccl_test(
    NAME emulated FOLDER ${PROJECT_SOURCE_DIR}/tests/cpp/emulated LIBRARIES pccl_emulator pccl_device
    SHARDS 5 SLOTS 2 TIMEOUT 2400 # under ThreadSanitizer
  )
  # Once more for GPUs that do not reach each other (csrc/device/gpu_path.h).
  pccl_run_test(emulated_host pccl_emulated_test 5 2400 2 PCCL_TEST_GPU_PATH=host)
  # What differs over PCIe between GPUs that do.
  pccl_run_test(
    emulated_pcie
    pccl_emulated_test
    1
    2400
    2
    PCCL_TEST_GPU_PATH=pcie
    "GTEST_FILTER=EmulatedPathsTest.*:EmulatedMessage*:WorldSizes/EmulatedTest.*:EmulatedPairTest.*:EmulatedOrderTest.*"
  )
else()
  message(STATUS "no test of kernels on the emulated GPU: CUDA's headers are missing")
endif()

# The collectives once more, by ways that the cost model does not choose between threads of one host:
# a schedule over links, and the segment's other algorithms.
function(pccl_test_algorithm name)
  list(JOIN ARGN "," algorithms)
  add_test(NAME comm_${name} COMMAND pccl_comm_test --gtest_filter=Shm/CollectiveTest*:UnevenCollectivesTest*)
  set_tests_properties(
    comm_${name} PROPERTIES TIMEOUT 600 LABELS cpu ENVIRONMENT "PCCL_ALGORITHM=${algorithms};PCCL_COSTS_FILE=off"
  )
endfunction()
set(links_per_pair gather=one_shot scatter=one_shot all_to_all=one_shot)
pccl_test_algorithm(
  rings all_reduce=ring all_gather=ring reduce_scatter=ring broadcast=ring reduce=ring
  ${links_per_pair}
)
pccl_test_algorithm(
  trees all_reduce=double_binary_tree broadcast=binomial reduce=binomial ${links_per_pair}
)
pccl_test_algorithm(
  all_pairs all_reduce=two_shot all_gather=one_shot reduce_scatter=one_shot broadcast=one_shot
  reduce=one_shot ${links_per_pair}
)
pccl_test_algorithm(
  pat all_reduce=pat all_gather=pat reduce_scatter=pat broadcast=ring reduce=ring ${links_per_pair}
)
set(kinds all_reduce all_gather reduce_scatter broadcast reduce gather scatter all_to_all)
foreach(algorithm one_shot direct)
  list(TRANSFORM kinds APPEND "=shm_${algorithm}" OUTPUT_VARIABLE choices)
  pccl_test_algorithm(shm_${algorithm} ${choices})
endforeach()
pccl_test_algorithm(shm_two_shot all_reduce=shm_two_shot)

# The C++ examples link libpccl.so alone, so they also test what that exports; two ranks meet in a file.
# What follows `expected` is given to both.
function(pccl_test_example name expected)
  add_executable(example_${name} ${PROJECT_SOURCE_DIR}/examples/${name}.cc)
  target_link_libraries(example_${name} PRIVATE pccl pccl_flags)
  set(program $<TARGET_FILE:example_${name}>)
  set(meeting ${PROJECT_BINARY_DIR}/example_meeting_${name})
  add_test(
    NAME example_${name}
    COMMAND
      sh -c
      "rm -f ${meeting} && { ${program} 0 2 file://${meeting} ${ARGN} & first=$!; } && \
       ${program} 1 2 file://${meeting} ${ARGN} && wait $first"
  )
  set_tests_properties(
    example_${name} PROPERTIES TIMEOUT 60 LABELS cpu PASS_REGULAR_EXPRESSION "${expected}"
  )
endfunction()
pccl_test_example(all_reduce "rank 1 of 2: sum of ranks is 1")
pccl_test_example(
  load_capsule "rank 1 of 2: two sums by [a-z0-9_]+ make 6"
  ${PROJECT_SOURCE_DIR}/tests/data/capsules/steps.capsule
)
pccl_test_example(workspace "rank 1 of 2: its neighbour wrote 1\nrank 1 of 2: three sums make 12")

# One for GPUs; where there is none, it says so in a line.
add_executable(example_all_reduce_gpu ${PROJECT_SOURCE_DIR}/examples/all_reduce_gpu.cc)
target_link_libraries(example_all_reduce_gpu PRIVATE pccl pccl_flags)
add_test(NAME example_all_reduce_gpu COMMAND example_all_reduce_gpu 0,1 1M)
set_tests_properties(
  example_all_reduce_gpu
  PROPERTIES
    TIMEOUT 120 LABELS cpu PASS_REGULAR_EXPRESSION
    "^rank 0: [^\n]*(CUDA|GPU|libcuda)[^\n]*\n$;rank 1 on GPU 1: 1048576 bytes in [^\n]* 0 wrong"
)

# Another one: a file of odd length, out of one process's memory into another's.
add_executable(example_move_file ${PROJECT_SOURCE_DIR}/examples/move_file.cc)
target_link_libraries(example_move_file PRIVATE pccl pccl_flags)
set(moved ${PROJECT_BINARY_DIR}/example_moved)
add_test(
  NAME example_move_file
  COMMAND
    sh -c
    "rm -rf ${moved} && mkdir ${moved} && cd ${moved} && head -c 5000017 /dev/urandom > file && \
     { $<TARGET_FILE:example_move_file> offer file handover & first=$!; } && \
     { i=0; until [ -e handover ] || [ $i -ge 300 ]; do sleep 0.1; i=$((i + 1)); done; } && \
     $<TARGET_FILE:example_move_file> fetch handover copy && wait $first && cmp file copy && \
     echo moved whole"
)
set_tests_properties(
  example_move_file PROPERTIES TIMEOUT 120 LABELS cpu PASS_REGULAR_EXPRESSION "moved whole"
)

# Phases, on a fabric in that process; tests/python/test_netconf_servers.py runs it on real servers.
add_executable(example_switch_phases ${PROJECT_SOURCE_DIR}/examples/switch_phases.cc)
target_link_libraries(example_switch_phases PRIVATE pccl pccl_flags)
add_test(NAME example_switch_phases COMMAND example_switch_phases)
set_tests_properties(
  example_switch_phases
  PROPERTIES
    TIMEOUT 60 LABELS cpu PASS_REGULAR_EXPRESSION
    "example-forwards: [^\n]*\nexample-backwards: [^\n]*\nno phase: [^\n]*\nexample-forwards: "
)

# A program of somebody else, who has an installed PCCL and nothing of this repository, no sanitizer either.
set(installed ${PROJECT_BINARY_DIR}/installed)
if(NOT PCCL_SANITIZE)
  add_test(
    NAME installed_package
    COMMAND
      sh -c
      "rm -rf ${installed} && \
       ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${installed}/prefix && \
       ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR}/tests/consumer -B ${installed}/build \
         -DCMAKE_PREFIX_PATH=${installed}/prefix -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} && \
       ${CMAKE_COMMAND} --build ${installed}/build && ${installed}/build/consumer"
  )
  set_tests_properties(
    installed_package PROPERTIES TIMEOUT 300 LABELS cpu PASS_REGULAR_EXPRESSION "hello from a\nall parts work"
  )
endif()

# The kill rate of the schedule verifier: build/dev/schedule_mutants prints the table.
set(PCCL_MUTANT_PARTS interpreter.cc judge.cc mutation.cc mutation_report.cc samples.cc)
list(TRANSFORM PCCL_MUTANT_PARTS PREPEND ${PROJECT_SOURCE_DIR}/tests/cpp/schedule/)
add_executable(
  schedule_mutants ${PROJECT_SOURCE_DIR}/tests/tools/schedule_mutants.cc ${PCCL_MUTANT_PARTS}
)
target_link_libraries(schedule_mutants PRIVATE pccl_schedule)
target_sources(pccl_capsule_test PRIVATE ${PCCL_MUTANT_PARTS})

# What NCCL's search finds and what ours does: build/dev/topology_table prints both.
add_executable(
  topology_table ${PROJECT_SOURCE_DIR}/tests/tools/topology_table.cc
                 ${PROJECT_SOURCE_DIR}/tests/cpp/topo/nccl_table.cc
)
target_link_libraries(topology_table PRIVATE pccl_topo pccl_fakes GTest::gtest)

# Faults by seed, as many runs as one likes: build/dev/chaos, make chaos.
add_executable(
  chaos ${PROJECT_SOURCE_DIR}/tests/tools/chaos.cc ${PROJECT_SOURCE_DIR}/tests/cpp/comm/chaos.cc
)
target_link_libraries(chaos PRIVATE pccl_comm pccl_fakes)

# What fingerprints cost: build/dev/fingerprint_cost, make fingerprint-cost.
add_executable(
  fingerprint_cost ${PROJECT_SOURCE_DIR}/tests/tools/fingerprint_cost.cc
                   ${PROJECT_SOURCE_DIR}/tests/cpp/comm/ranks.cc
)
target_link_libraries(fingerprint_cost PRIVATE pccl_fakes GTest::gtest)

# What a message costs its host over RDMA and over TCP: build/dev/verbs_cost.
if(PCCL_WITH_VERBS)
  add_executable(verbs_cost ${PROJECT_SOURCE_DIR}/tests/tools/verbs_cost.cc)
  target_link_libraries(verbs_cost PRIVATE pccl_fakes GTest::gtest)
endif()
