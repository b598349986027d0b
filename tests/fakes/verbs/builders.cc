// SPDX-License-Identifier: Apache-2.0

// ibv_wr_*: requests that are built step by step, and posted together by ibv_wr_complete.

#include "tests/fakes/verbs/objects.h"

namespace pccl::fake_verbs {

namespace {

ibv_send_wr& begin_request(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
    BuiltRequest& built = of(qp).built.emplace_back();
    built.request.wr_id = qp->wr_id;
    built.request.send_flags = qp->wr_flags;
    built.request.opcode = opcode;
    return built.request;
}

ibv_send_wr& begin_rdma(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address) {
    ibv_send_wr& request = begin_request(qp, opcode);
    request.wr.rdma.rkey = rkey;
    request.wr.rdma.remote_addr = address;
    return request;
}

ibv_send_wr& begin_atomic(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address) {
    ibv_send_wr& request = begin_request(qp, opcode);
    request.wr.atomic.rkey = rkey;
    request.wr.atomic.remote_addr = address;
    return request;
}

// The request that data is given for; null, with an error at ibv_wr_complete, if none was begun.
BuiltRequest* last_request(ibv_qp_ex* qp) {
    Qp& own = of(qp);
    if (own.built.empty()) own.build_error = EINVAL;
    return own.built.empty() ? nullptr : &own.built.back();
}

void add_inline(ibv_qp_ex* qp, const void* bytes, size_t length) {
    BuiltRequest* built = last_request(qp);
    if (built == nullptr) return;
    const auto* first = static_cast<const char*>(bytes);
    built->inlined.insert(built->inlined.end(), first, first + length);
    built->request.send_flags |= IBV_SEND_INLINE;
}

int complete_requests(ibv_qp_ex* qp) {
    Qp& own = of(qp);
    if (own.build_error != 0 || own.built.empty()) {
        own.built.clear();
        return own.build_error;
    }
    for (size_t i = 0; i < own.built.size(); ++i) {
        BuiltRequest& built = own.built[i];
        if ((built.request.send_flags & IBV_SEND_INLINE) != 0) {
            built.sges = {{reinterpret_cast<uint64_t>(built.inlined.data()),
                           static_cast<uint32_t>(built.inlined.size()), 0}};
        }
        built.request.sg_list = built.sges.data();
        built.request.num_sge = static_cast<int>(built.sges.size());
        built.request.next = i + 1 < own.built.size() ? &own.built[i + 1].request : nullptr;
    }
    ibv_send_wr* bad = nullptr;
    const int error = post_send(&qp->qp_base, &own.built[0].request, &bad);
    own.built.clear();
    return error;
}

}  // namespace

void set_builders(ibv_qp_ex& qp) {
    qp.wr_start = [](ibv_qp_ex* own) {
        of(own).built.clear();
        of(own).build_error = 0;
    };
    qp.wr_abort = [](ibv_qp_ex* own) { of(own).built.clear(); };
    qp.wr_complete = complete_requests;
    qp.wr_send = [](ibv_qp_ex* own) { begin_request(own, IBV_WR_SEND); };
    qp.wr_send_imm = [](ibv_qp_ex* own, __be32 imm) {
        begin_request(own, IBV_WR_SEND_WITH_IMM).imm_data = imm;
    };
    qp.wr_rdma_read = [](ibv_qp_ex* own, uint32_t rkey, uint64_t address) {
        begin_rdma(own, IBV_WR_RDMA_READ, rkey, address);
    };
    qp.wr_rdma_write = [](ibv_qp_ex* own, uint32_t rkey, uint64_t address) {
        begin_rdma(own, IBV_WR_RDMA_WRITE, rkey, address);
    };
    qp.wr_rdma_write_imm = [](ibv_qp_ex* own, uint32_t rkey, uint64_t address, __be32 imm) {
        begin_rdma(own, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address).imm_data = imm;
    };
    qp.wr_atomic_cmp_swp = [](ibv_qp_ex* own, uint32_t rkey, uint64_t address, uint64_t compare,
                              uint64_t swap) {
        ibv_send_wr& request = begin_atomic(own, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address);
        request.wr.atomic.compare_add = compare;
        request.wr.atomic.swap = swap;
    };
    qp.wr_atomic_fetch_add = [](ibv_qp_ex* own, uint32_t rkey, uint64_t address, uint64_t add) {
        begin_atomic(own, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address).wr.atomic.compare_add = add;
    };
    qp.wr_set_sge = [](ibv_qp_ex* own, uint32_t lkey, uint64_t address, uint32_t length) {
        BuiltRequest* built = last_request(own);
        if (built != nullptr) built->sges = {{address, length, lkey}};
    };
    qp.wr_set_sge_list = [](ibv_qp_ex* own, size_t elements, const ibv_sge* list) {
        BuiltRequest* built = last_request(own);
        if (built != nullptr) built->sges.assign(list, list + elements);
    };
    qp.wr_set_inline_data = [](ibv_qp_ex* own, void* bytes, size_t length) {
        add_inline(own, bytes, length);
    };
    qp.wr_set_inline_data_list = [](ibv_qp_ex* own, size_t buffers, const ibv_data_buf* list) {
        for (size_t i = 0; i < buffers; ++i) add_inline(own, list[i].addr, list[i].length);
    };
}

}  // namespace pccl::fake_verbs
