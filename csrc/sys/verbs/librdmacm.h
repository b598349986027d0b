// SPDX-License-Identifier: Apache-2.0

// Functions of librdmacm, found at run time; prototypes come from its header. Other code uses
// connection_manager.h, which needs no header of librdmacm.
#pragma once

#include <rdma/rdma_cma.h>

#include <string>

#include <pccl/status.h>

namespace pccl::sys::verbs {

// rdma_establish() and rdma_init_qp_attr() are in librdmacm since rdma-core 23.
#define PCCL_RDMACM_FUNCTIONS(each)                                                              \
    each(create_event_channel) each(destroy_event_channel) each(get_cm_event) each(ack_cm_event) \
        each(event_str) each(create_id) each(destroy_id) each(bind_addr) each(get_src_port)      \
            each(listen) each(resolve_addr) each(resolve_route) each(connect) each(accept)       \
                each(reject) each(establish) each(init_qp_attr) each(set_option)

struct Librdmacm {
#define PCCL_RDMACM_FUNCTION(name) decltype(&::rdma_##name) name = nullptr;
    PCCL_RDMACM_FUNCTIONS(PCCL_RDMACM_FUNCTION)
#undef PCCL_RDMACM_FUNCTION

    std::string path;     // "/usr/lib/x86_64-linux-gnu/librdmacm.so.1.3.44.0"
    std::string version;  // of rdma-core, "44.0"; empty where the path does not show it
};

/// Returns the library, opened once in a process. kUnavailable where it is not installed, or lacks
/// a function; kInvalidArgument for such a library of PCCL_RDMACM_LIBRARY.
[[nodiscard]] Result<const Librdmacm*> librdmacm();

}  // namespace pccl::sys::verbs
