// SPDX-License-Identifier: Apache-2.0

// What every transport promises, as one suite. A transport joins with a file of a few lines that
// instantiates TransportContract over a Candidate; the tests are in transport_contract_test.cc.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/transport.h"
#include "tests/fakes/host.h"

namespace pccl::transport::contract {

using fakes::MemberMaker;

struct Candidate {
    std::string name;
    /// Called once for each test; makes processes that can reach each other. An error skips the
    /// test, and is printed as the reason.
    std::function<Result<MemberMaker>()> new_world;

    friend std::ostream& operator<<(std::ostream& out, const Candidate& candidate) {
        return out << candidate.name;
    }
};

inline std::string candidate_name(const testing::TestParamInfo<Candidate>& test) {
    return test.param.name;
}

/// Stands for one process: its members, their waiter and the thread that serves them.
class Process final : public fakes::Host {
   public:
    explicit Process(const MemberMaker& make) : fakes::Host(make) {}
    ~Process() override;
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    void join_group(const GroupId& group, const Secret& secret);
    void start_accepting();
    /// Waits until `source` has connected; fails the test when it does not.
    std::unique_ptr<RecvLink> wait_for_link(Rank source, ChannelId channel = 0);
    void wait_for_refusal();
    /// Waits until a peer tells why it has left.
    Status wait_for_notice();
    [[nodiscard]] int refusals() const { return refusals_; }
    [[nodiscard]] std::size_t unclaimed_links();

    std::optional<Secret> secret_of(const GroupId& group) override;
    /// Whom it was asked by, in words.
    std::string answer(const LinkRequest& request) override;
    void noticed(const LinkRequest& request, const Status& reason) override;
    void accepted(const LinkRequest& request, std::unique_ptr<RecvLink> link) override;
    void refused(std::string_view transport_name, const Status& why) override;

   private:
    std::mutex mutex_;
    std::vector<Status> notices_;
    std::map<GroupId, Secret> secrets_;
    std::map<std::pair<Rank, ChannelId>, std::unique_ptr<RecvLink>> links_;
    std::atomic<int> refusals_{0};
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

struct LinkPair {
    std::unique_ptr<SendLink> sender;
    std::unique_ptr<RecvLink> receiver;
};

class TransportContract : public testing::TestWithParam<Candidate> {
   protected:
    static constexpr GroupId kGroup{1, 2, 3};
    static constexpr Secret kSecret{4, 5, 6};

    void SetUp() override;
    /// Process `rank`, made and accepting when it is first asked for.
    Process& process(Rank rank);
    Result<std::unique_ptr<SendLink>> pending_connect(Rank source, Rank destination,
                                                      ChannelId channel = 0);
    LinkPair connect(Rank source, Rank destination, ChannelId channel = 0);

    MemberMaker make_;
    std::map<Rank, std::unique_ptr<Process>> processes_;
};

/// Bytes that tell where in which stream they belong.
std::vector<std::byte> pattern(std::size_t count, unsigned stream = 0, std::size_t from = 0);

/// These wait for as long as a test may, and fail it when that is over or the link fails.
void send_all(SendLink& link, Waiter& waiter, ChannelId channel, Bytes bytes,
              Flush flush = Flush::kNow);
std::vector<std::byte> receive_exactly(RecvLink& link, Waiter& waiter, ChannelId channel,
                                       std::size_t count);
/// The error that the receiver finds after what has arrived, which is discarded.
Status wait_for_error(RecvLink& link, Waiter& waiter, ChannelId channel);
/// The error that a sender finds which keeps on sending.
Status wait_for_error(SendLink& link, Waiter& waiter, ChannelId channel);
/// Sends until the link takes no more for a while; returns how much it took.
std::size_t fill_up(SendLink& link, Waiter& waiter, ChannelId channel);

/// True once `look` is; false when it takes longer than any healthy test.
bool eventually(Waiter& waiter, const std::function<bool()>& look);

}  // namespace pccl::transport::contract
