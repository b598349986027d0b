// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/rdma.h"

#ifdef PCCL_WITH_VERBS
#include "csrc/transport/verbs/doctor.h"
#include "csrc/transport/verbs/rdma_report.h"
#endif

namespace pccl::runtime {

#ifdef PCCL_WITH_VERBS

transport::RdmaReport rdma_report() { return transport::verbs::make_rdma_report(); }

Result<std::unique_ptr<transport::RdmaDoctor>> make_rdma_doctor() {
    return transport::verbs::make_rdma_doctor();
}

#else

transport::RdmaReport rdma_report() {
    transport::RdmaReport report;
    report.failure = kNoRdma;
    return report;
}

Result<std::unique_ptr<transport::RdmaDoctor>> make_rdma_doctor() {
    return Status::unavailable(kNoRdma);
}

#endif

}  // namespace pccl::runtime
