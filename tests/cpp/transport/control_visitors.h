// SPDX-License-Identifier: Apache-2.0

// Hosts of control planes, and strangers and members that visit them.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/transport/control/control_plane.h"
#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/inquiry.h"
#include "csrc/transport/control/socket_control_plane.h"
#include "tests/cpp/transport/group_identity.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport {

using fakes::test_deadline;

inline constexpr LinkRequest kRequest{
    .group = kGroup, .source = 0, .destination = 1, .group_size = 2};

inline std::unique_ptr<SocketControlPlane> make(const ControlOptions& options) {
    auto made = SocketControlPlane::create(options);
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return std::move(made.value());
}

class ControlReceptionist final : public ControlHost {
   public:
    std::optional<Secret> secret_of(const GroupId& group) override {
        return group == kGroup ? std::optional(kSecret) : std::nullopt;
    }
    void refused(std::string_view, const Status& why) override { refusals.push_back(why); }
    std::string answer(const LinkRequest&) override { return "well"; }
    void noticed(const LinkRequest&, const Status&) override {}
    std::string status(const StatusQuestion& question) override {
        return concat("from ", question.first, " on");
    }
    void arrived(Arrival arrival) override { arrivals.push_back(std::move(arrival)); }

    std::vector<Status> refusals;
    std::vector<Arrival> arrivals;
};

/// A client that has its descriptors before it connects.
class Visitor {
   public:
    Visitor(const std::string& door, Service service) {
        const Introduction introduction{.request = kRequest, .service = service};
        client_ = std::move(
            HandshakeClient::start(
                {.address = sys::Address::parse(door).value(), .secret = kSecret, .stream = {}},
                {&introduction, 1}, nullptr)
                .value());
    }
    /// Until it is accepted.
    UniqueFd visit(ControlPlane& control, ControlHost& host) {
        for (const Deadline deadline = test_deadline(); !deadline.passed();) {
            const auto accepted = client_->advance();
            EXPECT_TRUE(accepted.is_ok()) << accepted.status().to_string();
            if (!accepted.is_ok()) break;
            if (*accepted) return std::move(client_->take_sockets().front());
            control.advance(host);
        }
        return {};
    }

   private:
    std::unique_ptr<HandshakeClient> client_;
};

/// A process whose unix socket leads nowhere from here, and which listens on the network, too.
class FarProcess {
   public:
    FarProcess() : control_(make({.interface = "127.0.0.0/8"})) {
        thread_ = std::thread([this] {
            while (!is_over_.load()) control_->advance(host_);
        });
    }
    ~FarProcess() {
        is_over_.store(true);
        thread_.join();
    }
    [[nodiscard]] ControlAddress address() const { return control_->address(); }

   private:
    std::unique_ptr<SocketControlPlane> control_;
    ControlReceptionist host_;
    std::atomic<bool> is_over_{false};
    std::thread thread_;
};

}  // namespace pccl::transport
