# SPDX-License-Identifier: Apache-2.0

# Third-party code, each behind one target of ours. None of it is visible outside libpccl.so.

find_package(Threads REQUIRED)

if(PCCL_DEPS_DIR)
  # The machine that runs this build may have no libcrypto.so.3 of its own.
  list(PREPEND CMAKE_PREFIX_PATH ${PCCL_DEPS_DIR})
  set(OPENSSL_ROOT_DIR ${PCCL_DEPS_DIR})
  set(OPENSSL_USE_STATIC_LIBS ON)
endif()

function(pccl_header_library TARGET HEADER)
  find_path(${TARGET}_INCLUDE_DIR ${HEADER})
  add_library(${TARGET} INTERFACE)
  if(NOT ${TARGET}_INCLUDE_DIR)
    pccl_missing_header(${HEADER})
    return()
  endif()
  target_include_directories(${TARGET} SYSTEM INTERFACE ${${TARGET}_INCLUDE_DIR})
endfunction()

pccl_header_library(pccl_fmt fmt/format.h)
target_compile_definitions(pccl_fmt INTERFACE FMT_HEADER_ONLY)
pccl_header_library(pccl_spdlog spdlog/spdlog.h)
target_compile_definitions(pccl_spdlog INTERFACE SPDLOG_HEADER_ONLY SPDLOG_FMT_EXTERNAL)
target_link_libraries(pccl_spdlog INTERFACE pccl_fmt)
pccl_header_library(pccl_json nlohmann/json.hpp)

# As a static library, so that libpccl.so needs no pugixml of the machine that runs it.
find_library(PCCL_LIB_pugixml NAMES libpugixml.a)
pccl_header_library(pccl_pugixml pugixml.hpp)
if(PCCL_LIB_pugixml)
  target_link_libraries(pccl_pugixml INTERFACE ${PCCL_LIB_pugixml})
elseif(pccl_pugixml_INCLUDE_DIR)
  pccl_missing("libpugixml.a: apt-get install libpugixml-dev, or set PCCL_DEPS_DIR")
endif()

if(PCCL_STATIC_CRYPTO)
  set(OPENSSL_USE_STATIC_LIBS ON)
endif()
find_package(OpenSSL COMPONENTS Crypto)
add_library(pccl_crypto INTERFACE)
if(TARGET OpenSSL::Crypto)
  target_link_libraries(pccl_crypto INTERFACE OpenSSL::Crypto)
else()
  pccl_missing_header(openssl/evp.h)
endif()

# RDMA: rdma-core's headers. libibverbs.so.1 is opened at run time: what is built here also loads on a
# machine without it.
find_path(PCCL_VERBS_HEADERS infiniband/verbs.h)
add_library(pccl_verbs INTERFACE)
set(PCCL_WITH_VERBS OFF)
if(PCCL_VERBS_HEADERS AND IS_DIRECTORY ${PROJECT_SOURCE_DIR}/csrc/transport/verbs)
  set(PCCL_WITH_VERBS ON)
  target_include_directories(pccl_verbs SYSTEM INTERFACE ${PCCL_VERBS_HEADERS})
else()
  message(STATUS "no infiniband/verbs.h: building without RDMA (apt-get install libibverbs-dev)")
endif()

# librdmacm's header, for connections by rdma_cm: librdmacm.so.1 is opened at run time, too.
find_path(PCCL_RDMACM_HEADERS rdma/rdma_cma.h)
set(PCCL_WITH_RDMACM OFF)
if(PCCL_WITH_VERBS AND PCCL_RDMACM_HEADERS)
  set(PCCL_WITH_RDMACM ON)
  target_include_directories(pccl_verbs SYSTEM INTERFACE ${PCCL_RDMACM_HEADERS})
elseif(PCCL_WITH_VERBS)
  message(STATUS "no rdma/rdma_cma.h: building without rdma_cm (apt-get install librdmacm-dev)")
endif()

# CUDA: device code for PCCL_CUDA_ARCHITECTURES, and the CUDA runtime as a static library, which nothing
# else in the process sees (NCCL does the same). libcuda.so.1, the driver, is opened at run time: what is
# built here also loads on a machine without a GPU.
if(PCCL_WITH_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    message(STATUS "no nvcc: building without CUDA")
    set(PCCL_WITH_CUDA OFF)
  endif()
endif()
add_library(pccl_cuda INTERFACE)
if(PCCL_WITH_CUDA)
  set(CMAKE_CUDA_ARCHITECTURES ${PCCL_CUDA_ARCHITECTURES})
  if(PCCL_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20) # CMake 3.25 does not know that nvcc has it
  endif()
  find_package(CUDAToolkit REQUIRED)
  target_include_directories(pccl_cuda SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_options(
    pccl_cuda
    INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
              # Kernels call constexpr functions of csrc/abi.
              $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>
  )
  if(PCCL_DEVELOPER)
    target_compile_options(pccl_cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
  endif()
  target_link_libraries(pccl_cuda INTERFACE CUDA::cudart_static)
endif()
