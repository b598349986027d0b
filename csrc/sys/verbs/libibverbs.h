// SPDX-License-Identifier: Apache-2.0

// Functions of libibverbs, found at run time.
//
// The prototypes come from rdma-core's headers; the library is opened by name, so that this one
// loads where there is none. Inline functions of the headers that go through ibv_context->ops
// (ibv_post_send(), ibv_poll_cq(), ...) are called as they are.
#pragma once

#include <infiniband/verbs.h>

#include <cstring>
#include <string>

#include <pccl/status.h>

namespace pccl::sys::verbs {

// Functions of every libibverbs.so.1.
#define PCCL_VERBS_REQUIRED(each)                                                                 \
    each(get_device_list) each(free_device_list) each(get_device_name) each(get_device_guid)      \
        each(open_device) each(close_device) each(query_device) each(query_port) each(query_gid)  \
            each(alloc_pd) each(dealloc_pd) each(reg_mr) each(dereg_mr) each(create_comp_channel) \
                each(destroy_comp_channel) each(create_cq) each(destroy_cq) each(get_cq_event)    \
                    each(ack_cq_events) each(create_qp) each(modify_qp) each(destroy_qp)          \
                        each(get_async_event) each(ack_async_event) each(fork_init)               \
                            each(wc_status_str) each(event_type_str)

// Functions of newer ones, with the first version that has each: 1.8 (rdma-core 28), 1.12 (34),
// 1.13 (35).
#define PCCL_VERBS_OPTIONAL(each) each(reg_mr_iova2) each(reg_dmabuf_mr) each(is_fork_initialized)

/// Returns a structure of zeroes: enumerations in it may have no name for zero, until they are set.
template <typename Structure>
[[nodiscard]] Structure zeroed() {
    Structure structure;  // NOLINT(cppcoreguidelines-pro-type-member-init): by the next line
    std::memset(&structure, 0, sizeof structure);
    return structure;
}

struct Libibverbs {
#define PCCL_VERBS_FUNCTION(name) decltype(&::ibv_##name) name = nullptr;
    PCCL_VERBS_REQUIRED(PCCL_VERBS_FUNCTION)
    PCCL_VERBS_OPTIONAL(PCCL_VERBS_FUNCTION)
#undef PCCL_VERBS_FUNCTION
    /// Null where the library is older than rdma-core 32.
    decltype(&::_ibv_query_gid_ex) query_gid_ex = nullptr;

    std::string path;     // "/usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0"
    std::string version;  // of rdma-core, "44.0"; empty where the path does not show it
};

/// Keeps pages of registered memory out of children, on kernels that copy pinned pages (before
/// 5.12). It must come before the first registration; later calls return the result of the first.
[[nodiscard]] Status prepare_fork(const Libibverbs& library);

/// Returns the library, opened once in a process. kUnavailable where it is not installed, or lacks
/// a function; kInvalidArgument for such a library of PCCL_IBVERBS_LIBRARY.
[[nodiscard]] Result<const Libibverbs*> libibverbs();

}  // namespace pccl::sys::verbs
