// SPDX-License-Identifier: Apache-2.0

// Functions that only providers (libmlx5, libefa, ...) and librdmacm call, with devices that the
// fake does not have. Programs such as perftest's link these libraries, whose loading needs the
// names.

#include <cerrno>

// NOLINTBEGIN(bugprone-macro-parentheses,readability-identifier-naming)
#define PCCL_UNSUPPORTED(name) \
    extern "C" int name() { return EOPNOTSUPP; }
#define PCCL_UNSUPPORTED_OBJECT(name) \
    extern "C" void* name() {         \
        errno = EOPNOTSUPP;           \
        return nullptr;               \
    }

extern "C" bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy = false;

PCCL_UNSUPPORTED_OBJECT(_verbs_init_and_alloc_context)
PCCL_UNSUPPORTED_OBJECT(ibv_import_device)
PCCL_UNSUPPORTED_OBJECT(ibv_import_dm)
PCCL_UNSUPPORTED_OBJECT(ibv_import_mr)
PCCL_UNSUPPORTED_OBJECT(ibv_import_pd)
PCCL_UNSUPPORTED_OBJECT(verbs_open_device)

PCCL_UNSUPPORTED(__ioctl_final_num_attrs)
PCCL_UNSUPPORTED(__verbs_log)
PCCL_UNSUPPORTED(execute_ioctl)
PCCL_UNSUPPORTED(ibv_cmd_advise_mr)
PCCL_UNSUPPORTED(ibv_cmd_alloc_dm)
PCCL_UNSUPPORTED(ibv_cmd_alloc_mw)
PCCL_UNSUPPORTED(ibv_cmd_alloc_pd)
PCCL_UNSUPPORTED(ibv_cmd_attach_mcast)
PCCL_UNSUPPORTED(ibv_cmd_close_xrcd)
PCCL_UNSUPPORTED(ibv_cmd_create_ah)
PCCL_UNSUPPORTED(ibv_cmd_create_counters)
PCCL_UNSUPPORTED(ibv_cmd_create_cq)
PCCL_UNSUPPORTED(ibv_cmd_create_cq_ex)
PCCL_UNSUPPORTED(ibv_cmd_create_flow)
PCCL_UNSUPPORTED(ibv_cmd_create_flow_action_esp)
PCCL_UNSUPPORTED(ibv_cmd_create_qp)
PCCL_UNSUPPORTED(ibv_cmd_create_qp_ex)
PCCL_UNSUPPORTED(ibv_cmd_create_qp_ex2)
PCCL_UNSUPPORTED(ibv_cmd_create_rwq_ind_table)
PCCL_UNSUPPORTED(ibv_cmd_create_srq)
PCCL_UNSUPPORTED(ibv_cmd_create_srq_ex)
PCCL_UNSUPPORTED(ibv_cmd_create_wq)
PCCL_UNSUPPORTED(ibv_cmd_dealloc_mw)
PCCL_UNSUPPORTED(ibv_cmd_dealloc_pd)
PCCL_UNSUPPORTED(ibv_cmd_dereg_mr)
PCCL_UNSUPPORTED(ibv_cmd_destroy_ah)
PCCL_UNSUPPORTED(ibv_cmd_destroy_counters)
PCCL_UNSUPPORTED(ibv_cmd_destroy_cq)
PCCL_UNSUPPORTED(ibv_cmd_destroy_flow)
PCCL_UNSUPPORTED(ibv_cmd_destroy_flow_action)
PCCL_UNSUPPORTED(ibv_cmd_destroy_qp)
PCCL_UNSUPPORTED(ibv_cmd_destroy_rwq_ind_table)
PCCL_UNSUPPORTED(ibv_cmd_destroy_srq)
PCCL_UNSUPPORTED(ibv_cmd_destroy_wq)
PCCL_UNSUPPORTED(ibv_cmd_detach_mcast)
PCCL_UNSUPPORTED(ibv_cmd_free_dm)
PCCL_UNSUPPORTED(ibv_cmd_get_context)
PCCL_UNSUPPORTED(ibv_cmd_modify_cq)
PCCL_UNSUPPORTED(ibv_cmd_modify_flow_action_esp)
PCCL_UNSUPPORTED(ibv_cmd_modify_qp)
PCCL_UNSUPPORTED(ibv_cmd_modify_qp_ex)
PCCL_UNSUPPORTED(ibv_cmd_modify_srq)
PCCL_UNSUPPORTED(ibv_cmd_modify_wq)
PCCL_UNSUPPORTED(ibv_cmd_open_qp)
PCCL_UNSUPPORTED(ibv_cmd_open_xrcd)
PCCL_UNSUPPORTED(ibv_cmd_poll_cq)
PCCL_UNSUPPORTED(ibv_cmd_post_recv)
PCCL_UNSUPPORTED(ibv_cmd_post_send)
PCCL_UNSUPPORTED(ibv_cmd_post_srq_recv)
PCCL_UNSUPPORTED(ibv_cmd_query_context)
PCCL_UNSUPPORTED(ibv_cmd_query_device_any)
PCCL_UNSUPPORTED(ibv_cmd_query_mr)
PCCL_UNSUPPORTED(ibv_cmd_query_port)
PCCL_UNSUPPORTED(ibv_cmd_query_qp)
PCCL_UNSUPPORTED(ibv_cmd_query_srq)
PCCL_UNSUPPORTED(ibv_cmd_read_counters)
PCCL_UNSUPPORTED(ibv_cmd_reg_dm_mr)
PCCL_UNSUPPORTED(ibv_cmd_reg_dmabuf_mr)
PCCL_UNSUPPORTED(ibv_cmd_reg_mr)
PCCL_UNSUPPORTED(ibv_cmd_req_notify_cq)
PCCL_UNSUPPORTED(ibv_cmd_rereg_mr)
PCCL_UNSUPPORTED(ibv_cmd_resize_cq)
PCCL_UNSUPPORTED(ibv_copy_ah_attr_from_kern)
PCCL_UNSUPPORTED(ibv_copy_path_rec_from_kern)
PCCL_UNSUPPORTED(ibv_copy_path_rec_to_kern)
PCCL_UNSUPPORTED(ibv_copy_qp_attr_from_kern)
PCCL_UNSUPPORTED(ibv_read_ibdev_sysfs_file)
PCCL_UNSUPPORTED(ibv_unimport_dm)
PCCL_UNSUPPORTED(ibv_unimport_mr)
PCCL_UNSUPPORTED(ibv_unimport_pd)
PCCL_UNSUPPORTED(verbs_init_cq)
PCCL_UNSUPPORTED(verbs_register_driver_34)
PCCL_UNSUPPORTED(verbs_set_ops)
PCCL_UNSUPPORTED(verbs_uninit_context)
// NOLINTEND(bugprone-macro-parentheses,readability-identifier-naming)
