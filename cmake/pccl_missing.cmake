# SPDX-License-Identifier: Apache-2.0

# What the build needs and does not find is collected, so that one message names it all.

# The Debian package of each header, from headers.txt: PCCL_PACKAGE_OF_<header>.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/headers.txt lines REGEX "^[^#]")
foreach(line IN LISTS lines)
  string(REPLACE " " ";" words ${line})
  list(GET words 0 header)
  list(GET words 1 PCCL_PACKAGE_OF_${header})
endforeach()

function(pccl_missing TEXT)
  set_property(GLOBAL APPEND PROPERTY PCCL_MISSING " ${TEXT}")
endfunction()

function(pccl_missing_header HEADER)
  pccl_missing("${HEADER}: apt-get install ${PCCL_PACKAGE_OF_${HEADER}}, or set PCCL_DEPS_DIR")
endfunction()

function(pccl_report_missing)
  get_property(missing GLOBAL PROPERTY PCCL_MISSING)
  if(missing)
    list(JOIN missing "\n" missing)
    message(FATAL_ERROR " pccl cannot be built here; missing are:\n${missing}")
  endif()
endfunction()
