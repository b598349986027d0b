// The control plane of a pretended process: questions and notices go from process to process in
// memory, and meet the deaths that the fabric's plan has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "csrc/transport/control/control_plane.h"
#include "csrc/transport/loopback/process_table.h"

namespace pccl::transport::loopback {

class PCCL_API LoopbackControlPlane final : public ControlPlane {
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
    /// From now on who calls is answered at once, on its own thread. `host` outlives the process.
    void answer_inline(ControlHost& host) { process_->inline_host = &host; }

   private:
    /// The answer, if it is a query.
    Result<std::string> call(const ControlAddress& peer, const Introduction& introduction,
                             const Secret& secret, Deadline deadline);

    const std::shared_ptr<ProcessTable> processes_;
    const std::shared_ptr<Process> process_;
    const ControlAddress address_;
};

}  // namespace pccl::transport::loopback
