// SPDX-License-Identifier: Apache-2.0

// NIXL's backend over one session: an agent's memory is registered with it, and its peers are the
// sessions of other agents.
//
// NIXL calls from many threads at once; sessions are safe for that. Connections are made by the
// first transfer.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <pccl/session.h>
#include "backend/backend_engine.h"
#include "plugins/nixl/metadata.h"

namespace pccl::nixl {

class Engine final : public nixlBackendEngine {
   public:
    explicit Engine(const nixlBackendInitParams* parameters);

    [[nodiscard]] bool supportsRemote() const override { return true; }
    [[nodiscard]] bool supportsLocal() const override { return true; }
    [[nodiscard]] bool supportsNotif() const override { return true; }
    /// VRAM_SEG is refused at its registration where this process has no CUDA.
    [[nodiscard]] nixl_mem_list_t getSupportedMems() const override { return {DRAM_SEG, VRAM_SEG}; }

    nixl_status_t registerMem(const nixlBlobDesc& memory, const nixl_mem_t& kind,
                              nixlBackendMD*& out) override;
    nixl_status_t deregisterMem(nixlBackendMD* metadata) override;
    nixl_status_t getPublicData(const nixlBackendMD* metadata, std::string& out) const override;
    nixl_status_t loadRemoteMD(const nixlBlobDesc& memory, const nixl_mem_t& kind,
                               const std::string& agent, nixlBackendMD*& out) override;
    nixl_status_t loadLocalMD(nixlBackendMD* local, nixlBackendMD*& out) override;
    nixl_status_t unloadMD(nixlBackendMD* metadata) override;

    nixl_status_t getConnInfo(std::string& out) const override;
    nixl_status_t loadRemoteConnInfo(const std::string& agent, const std::string& info) override;
    nixl_status_t connect(const std::string& agent) override;
    nixl_status_t disconnect(const std::string& agent) override;

    nixl_status_t prepXfer(const nixl_xfer_op_t& op, const nixl_meta_dlist_t& local,
                           const nixl_meta_dlist_t& remote, const std::string& agent,
                           nixlBackendReqH*& out, const nixl_opt_b_args_t* options) const override;
    nixl_status_t postXfer(const nixl_xfer_op_t& op, const nixl_meta_dlist_t& local,
                           const nixl_meta_dlist_t& remote, const std::string& agent,
                           nixlBackendReqH*& handle,
                           const nixl_opt_b_args_t* options) const override;
    nixl_status_t checkXfer(nixlBackendReqH* handle) const override;
    nixl_status_t releaseReqH(nixlBackendReqH* handle) const override;

    nixl_status_t getNotifs(notif_list_t& out) override;
    nixl_status_t genNotif(const std::string& agent, const std::string& message) const override;

   private:
    [[nodiscard]] std::string parameter(const std::string& name) const;
    /// The name of an agent's session; kInvalidArgument where its connection info is not loaded.
    [[nodiscard]] Result<std::string> session_of(const std::string& agent) const;
    nixl_status_t load(const std::string& agent, const std::string& descriptor,
                       std::uintptr_t begin, nixlBackendMD*& out) const;
    /// Returns the payload of a message of this agent, as its peers read it.
    [[nodiscard]] std::vector<std::byte> payload_of(const std::string& message) const;
    void await_released() const;

    std::unique_ptr<p2p::Session> session_;
    mutable std::mutex mutex_;                     // guards what follows
    std::map<std::string, std::string> sessions_;  // by agent
    mutable std::vector<p2p::Work> released_;      // not ended when their requests went
};

}  // namespace pccl::nixl
