# SPDX-License-Identifier: Apache-2.0

# PCCL_VERSION, from python/pccl/_version.py; a change of that file configures anew.

set(version_file ${PROJECT_SOURCE_DIR}/python/pccl/_version.py)
file(STRINGS ${version_file} PCCL_VERSION REGEX "^__version__")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" PCCL_VERSION "${PCCL_VERSION}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${version_file})
