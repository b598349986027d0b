# SPDX-License-Identifier: Apache-2.0

# Stands in for rdma-core's library, under its name and with its versions of symbols, so that Debian's programs run
# on it, too (LD_LIBRARY_PATH). It stays loaded (nodelete): threads of it deliver what is due.
include_guard()
if(PCCL_WITH_VERBS)
  file(GLOB verbs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fakes/verbs/*.cc)
  add_library(pccl_fake_verbs SHARED ${verbs})
  target_include_directories(pccl_fake_verbs PRIVATE ${PROJECT_SOURCE_DIR} ${PCCL_VERBS_HEADERS})
  set(versions ${PROJECT_SOURCE_DIR}/tests/fakes/verbs/libibverbs.map)
  target_link_libraries(pccl_fake_verbs PRIVATE pccl_flags)
  target_link_options(pccl_fake_verbs PRIVATE -Wl,--version-script=${versions} -Wl,-z,nodelete)
  set_target_properties(
    pccl_fake_verbs
    PROPERTIES OUTPUT_NAME ibverbs
               SOVERSION 1
               CXX_VISIBILITY_PRESET default
               LINK_DEPENDS ${versions}
               LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fakes/verbs
  )
endif()
# Likewise librdmacm, with the functions that the library calls: in a folder of its own, because Debian's programs need
# more of them.
if(PCCL_WITH_RDMACM)
  file(GLOB rdmacm CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fakes/rdmacm/*.cc)
  add_library(pccl_fake_rdmacm SHARED ${rdmacm})
  target_include_directories(
    pccl_fake_rdmacm PRIVATE ${PROJECT_SOURCE_DIR} ${PCCL_RDMACM_HEADERS}
  )
  set(versions ${PROJECT_SOURCE_DIR}/tests/fakes/rdmacm/librdmacm.map)
  target_link_libraries(pccl_fake_rdmacm PRIVATE pccl_flags pccl_fake_verbs)
  target_link_options(pccl_fake_rdmacm PRIVATE -Wl,--version-script=${versions} -Wl,-z,nodelete)
  set_target_properties(
    pccl_fake_rdmacm
    PROPERTIES OUTPUT_NAME rdmacm
               SOVERSION 1
               CXX_VISIBILITY_PRESET default
               LINK_DEPENDS ${versions}
               LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fakes/rdmacm
  )
endif()
