// SPDX-License-Identifier: Apache-2.0

// Control plane of a simulated process: questions and notices pass from process to process in
// memory, and are subject to the process deaths of the fabric's plan.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "csrc/transport/control/control_plane.h"
#include "tests/fakes/loopback/process_table.h"

namespace pccl::transport::loopback {

class LoopbackControlPlane final : public ControlPlane {
   public:
    LoopbackControlPlane(std::shared_ptr<ProcessTable> processes, std::shared_ptr<Process> process);

    [[nodiscard]] const ControlAddress& address() const override { return address_; }
    Result<std::string> query(const ControlAddress& peer, const LinkRequest& request,
                              const Secret& secret, Deadline deadline) override;
    Status notify(const ControlAddress& peer, const LinkRequest& request, const Secret& secret,
                  const Status& reason, Deadline deadline) override;
    Status probe(const ControlAddress& peer, Deadline deadline) override;
    Result<std::string> find_address(const ControlAddress& peer,
                                     const std::vector<std::string>& addresses,
                                     const LinkRequest& request, const Secret& secret,
                                     Deadline deadline) override;
    [[nodiscard]] std::vector<int> poll_fds() const override { return {process_->call_fd()}; }
    void advance(ControlHost& host) override { process_->answer_calls(host); }
    /// Answers calls from now on at once, on the caller's thread. `host` outlives the process.
    void answer_inline(ControlHost& host) { process_->inline_host = &host; }

   private:
    /// Returns the answer, if it is a query.
    Result<std::string> call(const ControlAddress& peer, const Introduction& introduction,
                             const Secret& secret, Deadline deadline);

    const std::shared_ptr<ProcessTable> processes_;
    const std::shared_ptr<Process> process_;
    const ControlAddress address_;
};

}  // namespace pccl::transport::loopback
