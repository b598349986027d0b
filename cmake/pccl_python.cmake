# SPDX-License-Identifier: Apache-2.0

# pccl._core (pybind11, no libtorch) and pccl._torch (the c10d backend), plus a package tree in the
# build folder: PYTHONPATH=<build>/python gives the sources of python/pccl with the modules built here.

file(GLOB_RECURSE core_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/csrc/bindings/*.cc)
file(GLOB_RECURSE torch_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/csrc/torch/*.cc)

# Where the library's objects are in ccache and the modules' are not (tools/torch_versions.sh).
option(PCCL_UNITY_MODULES "Compile files of the Python modules together, as wheels do" ${PCCL_UNITY_BUILD})

# pccl_docstrings(<module> <variable>): writes the table of what python/pccl/<module>.pyi says, or the stubs in
# the folder python/pccl/<module>.
#
# While configuring: all files of a module would wait for a command that makes one of them, and that
# command for all that the module links.
function(pccl_docstrings MODULE TABLE)
  set(program ${PROJECT_SOURCE_DIR}/cmake/make_docstrings.py)
  set(reader ${PROJECT_SOURCE_DIR}/cmake/read_stub.py)
  set(stub ${PROJECT_SOURCE_DIR}/python/pccl/${MODULE})
  file(GLOB stubs CONFIGURE_DEPENDS ${stub}.pyi ${stub}/*.pyi)
  set(table ${PROJECT_BINARY_DIR}/docstrings/${MODULE}.cc)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${program} ${reader} ${stubs})
  execute_process(
    COMMAND ${Python_EXECUTABLE} ${program} ${stub} ${table}.new COMMAND_ERROR_IS_FATAL ANY
  )
  file(COPY_FILE ${table}.new ${table} ONLY_IF_DIFFERENT)
  set(${TABLE} ${table} PARENT_SCOPE)
endfunction()

# pccl_extension(NAME <module> SOURCES <files...> TOGETHER <most> LIBRARIES <targets...> RPATH <dirs...>)
#
# The module shows the docstrings of its stub. Wheels compile so many of its
# files together: more are faster on two cores, as headers take 6 s (torch's 15), fewer on many.
function(pccl_extension)
  cmake_parse_arguments(MODULE "" "NAME;TOGETHER" "SOURCES;LIBRARIES;RPATH" ${ARGN})
  pccl_docstrings(${MODULE_NAME} docstrings)
  set(sources ${MODULE_SOURCES})
  if(PCCL_UNITY_MODULES)
    pccl_unity_groups(sources ${MODULE_TOGETHER})
  endif()
  Python_add_library(${MODULE_NAME} MODULE WITH_SOABI ${sources} ${docstrings})
  target_link_libraries(${MODULE_NAME} PRIVATE pccl pccl_module_headers ${MODULE_LIBRARIES})
  # Nothing of the headers that it includes, nor of a static libstdc++, mixes with what is loaded already.
  target_link_options(${MODULE_NAME} PRIVATE -Wl,--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/module.map)
  set_property(TARGET ${MODULE_NAME} APPEND PROPERTY LINK_DEPENDS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/module.map)
  set_target_properties(
    ${MODULE_NAME}
    PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PCCL_PACKAGE_DIR}
               BUILD_RPATH_USE_ORIGIN ON
               INSTALL_RPATH "${MODULE_RPATH}"
  )
  install(TARGETS ${MODULE_NAME} LIBRARY DESTINATION pccl COMPONENT python EXCLUDE_FROM_ALL)
endfunction()

# What a Python module needs to compile against headers of the library, without linking it again.
add_library(pccl_module_headers INTERFACE)
target_link_libraries(pccl_module_headers INTERFACE pccl_flags Threads::Threads)

set(PCCL_MODULES "")
if(core_sources)
  pccl_extension(
    NAME _core
    SOURCES ${core_sources}
    TOGETHER 11
    LIBRARIES pccl_pybind11
    RPATH $ORIGIN
  )
  list(APPEND PCCL_MODULES _core)
endif()
if(torch_sources AND PCCL_WITH_TORCH)
  pccl_extension(
    NAME _torch
    SOURCES ${torch_sources}
    TOGETHER 20
    LIBRARIES pccl_torch_sdk pccl_pybind11
    RPATH $ORIGIN $ORIGIN/../torch/lib
  )
  # Of what a call takes in it, more cannot be measured; of what it takes to compile, a quarter.
  target_compile_options(_torch PRIVATE -O1)
  target_compile_definitions(
    _torch PRIVATE TORCH_EXTENSION_NAME=_torch TORCH_API_INCLUDE_EXTENSION_H
  )
  # They are two thirds of what a file here takes; to write them down takes 30 s, more than the two groups of a wheel
  # would save. (pybind11's alone, and GoogleTest's, would save next to nothing.)
  if(NOT PCCL_UNITY_MODULES)
    pccl_precompile(
      _torch PRIVATE <ATen/ATen.h> <torch/csrc/distributed/c10d/Backend.hpp>
                     <torch/csrc/utils/pybind.h>
    )
  endif()
  list(APPEND PCCL_MODULES _torch)
endif()

list(TRANSFORM PCCL_MODULES REPLACE "(.+)" "\"\\1\"," OUTPUT_VARIABLE PCCL_MODULES_QUOTED)
list(JOIN PCCL_MODULES_QUOTED " " PCCL_MODULES_QUOTED)
set(PCCL_CUDA_BUILT False)
if(PCCL_WITH_CUDA AND CMAKE_CUDA_COMPILER_LOADED)
  set(PCCL_CUDA_BUILT True)
endif()
configure_file(cmake/build_info.py.in ${PCCL_PACKAGE_DIR}/_build_info.py @ONLY)
install(FILES ${PCCL_PACKAGE_DIR}/_build_info.py DESTINATION pccl COMPONENT python EXCLUDE_FROM_ALL)

# The wheel takes python/pccl by itself; the tree in the build folder points at it, file by file.
if(NOT SKBUILD)
  file(GLOB package_entries CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/pccl/*)
  execute_process(
    COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/link_package.py
            ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/python
    COMMAND_ERROR_IS_FATAL ANY
  )
endif()
