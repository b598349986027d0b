# SPDX-License-Identifier: Apache-2.0

# pccl_pybind11 and pccl_torch_sdk: the headers and libraries of the torch that Python imports.
#
# find_package(Torch) is avoided on purpose: against a CUDA build of torch it wants the CUDA toolkit,
# which nothing here needs. pybind11 is torch's own copy: another one would not share torch's types.

execute_process(
  COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/query_torch.py
  OUTPUT_VARIABLE torch_facts
  OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_VARIABLE torch_error
  RESULT_VARIABLE torch_status
)
if(NOT torch_status EQUAL 0)
  pccl_missing(
    "torch, which must be installed first: pip install torch==2.13.0, then pip install . --no-build-isolation (${Python_EXECUTABLE} cannot import it); or -DPCCL_WITH_TORCH=OFF, for numpy alone"
  )
  add_library(pccl_pybind11 INTERFACE)
  return()
endif()
list(GET torch_facts 0 PCCL_TORCH_VERSION)
list(GET torch_facts 1 PCCL_TORCH_DIR)
list(GET torch_facts 2 PCCL_TORCH_CXX11_ABI)
message(STATUS "torch ${PCCL_TORCH_VERSION} in ${PCCL_TORCH_DIR}")

add_library(pccl_pybind11 INTERFACE)
target_include_directories(pccl_pybind11 SYSTEM INTERFACE ${PCCL_TORCH_DIR}/include)
pccl_without_path(pccl_pybind11 ${PCCL_TORCH_DIR} torch)

add_library(pccl_torch_sdk INTERFACE)
target_include_directories(
  pccl_torch_sdk SYSTEM
  INTERFACE ${PCCL_TORCH_DIR}/include ${PCCL_TORCH_DIR}/include/torch/csrc/api/include
)
target_compile_definitions(
  pccl_torch_sdk INTERFACE _GLIBCXX_USE_CXX11_ABI=${PCCL_TORCH_CXX11_ABI} USE_DISTRIBUTED
                           USE_C10D_GLOO USE_RPC USE_TENSORPIPE
)
foreach(name c10 torch_cpu torch torch_python)
  find_library(
    PCCL_LIB_${name} ${name} PATHS ${PCCL_TORCH_DIR}/lib NO_DEFAULT_PATH REQUIRED NO_CACHE
  )
  target_link_libraries(pccl_torch_sdk INTERFACE ${PCCL_LIB_${name}})
endforeach()
