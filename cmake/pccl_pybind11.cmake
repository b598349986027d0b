# SPDX-License-Identifier: Apache-2.0

# pccl_pybind11 without torch: the package of Python that is called so.

execute_process(
  COMMAND ${Python_EXECUTABLE} -c "import pybind11; print(pybind11.get_include())"
  OUTPUT_VARIABLE pybind11_include
  OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_QUIET
)
if(NOT pybind11_include)
  pccl_missing("pybind11: ${Python_EXECUTABLE} -m pip install pybind11")
endif()
add_library(pccl_pybind11 INTERFACE)
target_include_directories(pccl_pybind11 SYSTEM INTERFACE ${pybind11_include})
pccl_without_path(pccl_pybind11 "${pybind11_include}" pybind11)
