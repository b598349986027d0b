// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/transport_contract.h"

#include <algorithm>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "tests/fakes/connect.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport::contract {
namespace {

constexpr std::size_t kFarTooMuch = 256 * kMiB;

}  // namespace

Process::~Process() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
}

void Process::join_group(const GroupId& group, const Secret& secret) {
    const std::lock_guard lock(mutex_);
    secrets_[group] = secret;
}

void Process::start_accepting() {
    thread_ = std::thread([this] {
        while (!stopping_) serve(std::chrono::milliseconds(10));
    });
}

std::unique_ptr<RecvLink> Process::wait_for_link(Rank source, ChannelId channel) {
    std::unique_ptr<RecvLink> link;
    const bool came = eventually(waiter(), [&] {
        const std::lock_guard lock(mutex_);
        const auto found = links_.find({source, channel});
        if (found == links_.end()) return false;
        link = std::move(found->second);
        links_.erase(found);
        return true;
    });
    EXPECT_TRUE(came) << "no link from rank " << source << " on channel " << channel;
    return link;
}

void Process::wait_for_refusal() {
    EXPECT_TRUE(eventually(waiter(), [&] { return refusals_ > 0; }));
}

Status Process::wait_for_notice() {
    Status completed;
    EXPECT_TRUE(eventually(waiter(), [&] {
        const std::lock_guard lock(mutex_);
        if (!notices_.empty()) completed = notices_.back();
        return !notices_.empty();
    }));
    return completed;
}

std::size_t Process::unclaimed_links() {
    const std::lock_guard lock(mutex_);
    return links_.size();
}

std::optional<Secret> Process::secret_of(const GroupId& group) {
    const std::lock_guard lock(mutex_);
    const auto found = secrets_.find(group);
    return found == secrets_.end() ? std::nullopt : std::optional(found->second);
}

std::string Process::answer(const LinkRequest& request) {
    return concat("rank ", request.destination, " answers rank ", request.source);
}

void Process::noticed(const LinkRequest&, const Status& reason) {
    const std::lock_guard lock(mutex_);
    notices_.push_back(reason);
    waiter().wake();
}

void Process::accepted(const LinkRequest& request, std::unique_ptr<RecvLink> link) {
    const std::lock_guard lock(mutex_);
    links_[{request.source, request.channel}] = std::move(link);
    waiter().wake();
}

void Process::refused(std::string_view, const Status&) {
    ++refusals_;
    waiter().wake();
}

void TransportContract::SetUp() {
    auto world = GetParam().new_world();
    if (!world.is_ok()) GTEST_SKIP() << world.status().to_string();
    make_ = std::move(world.value());
}

Process& TransportContract::process(Rank rank) {
    auto& made = processes_[rank];
    if (made == nullptr) {
        made = std::make_unique<Process>(make_);
        made->join_group(kGroup, kSecret);
        made->start_accepting();
    }
    return *made;
}

Result<std::unique_ptr<SendLink>> TransportContract::pending_connect(Rank source, Rank destination,
                                                                     ChannelId channel) {
    const LinkRequest request{.group = kGroup,
                              .source = source,
                              .destination = destination,
                              .channel = channel,
                              .group_size = 4};
    return fakes::connect(process(source).transport(), process(destination).address(), request,
                          kSecret, fakes::test_deadline());
}

LinkPair TransportContract::connect(Rank source, Rank destination, ChannelId channel) {
    auto sender = pending_connect(source, destination, channel);
    EXPECT_TRUE(sender.is_ok()) << sender.status().to_string();
    if (!sender.is_ok()) std::abort();
    return {std::move(sender.value()), process(destination).wait_for_link(source, channel)};
}

std::vector<std::byte> pattern(std::size_t count, unsigned stream, std::size_t from) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = from + i;
        bytes[i] =
            static_cast<std::byte>((at * 31 + (at >> 8) * 7 + (at >> 16) + stream * 101) & 255);
    }
    return bytes;
}

bool eventually(Waiter& waiter, const std::function<bool()>& look) {
    const Deadline deadline = fakes::test_deadline();
    Backoff backoff(waiter);
    while (!look()) {
        if (deadline.passed()) return false;
        backoff.pause();
    }
    return true;
}

void send_all(SendLink& link, Waiter& waiter, ChannelId channel, Bytes bytes, Flush flush) {
    const bool done = eventually(waiter, [&] {
        while (!bytes.empty()) {
            const auto taken = link.send(channel, bytes, flush);
            if (!taken.is_ok()) {
                ADD_FAILURE() << taken.status().to_string();
                return true;
            }
            if (taken.value() == 0) return false;
            bytes = bytes.subspan(taken.value());
        }
        return true;
    });
    EXPECT_TRUE(done) << bytes.size() << " bytes could not be sent";
}

std::vector<std::byte> receive_exactly(RecvLink& link, Waiter& waiter, ChannelId channel,
                                       std::size_t count) {
    std::vector<std::byte> bytes(count);
    MutableBytes rest(bytes);
    const bool done = eventually(waiter, [&] {
        while (!rest.empty()) {
            const auto got = link.receive(channel, rest);
            if (!got.is_ok()) {
                ADD_FAILURE() << got.status().to_string();
                return true;
            }
            if (got.value() == 0) return false;
            rest = rest.subspan(got.value());
        }
        return true;
    });
    EXPECT_TRUE(done) << rest.size() << " bytes of " << count << " did not come";
    return bytes;
}

Status wait_for_error(RecvLink& link, Waiter& waiter, ChannelId channel) {
    Status error;
    std::vector<std::byte> discarded(64 * kKiB);
    EXPECT_TRUE(eventually(waiter, [&] {
        error = link.receive(channel, discarded).status();
        return !error.is_ok();
    }));
    return error;
}

Status wait_for_error(SendLink& link, Waiter& waiter, ChannelId channel) {
    Status error;
    const auto bytes = pattern(4 * kKiB);
    EXPECT_TRUE(eventually(waiter, [&] {
        error = link.send(channel, bytes, Flush::kNow).status();
        return !error.is_ok();
    }));
    return error;
}

std::size_t fill_up(SendLink& link, Waiter& waiter, ChannelId channel) {
    std::size_t total = 0;
    const auto quiet = std::chrono::milliseconds(200);
    Deadline deadline = Deadline::after(quiet);
    Backoff backoff(waiter);
    while (!deadline.passed() && total < kFarTooMuch) {
        const auto taken = link.send(channel, pattern(16 * kKiB, 0, total), Flush::kNow);
        EXPECT_TRUE(taken.is_ok()) << taken.status().to_string();
        if (!taken.is_ok()) break;
        total += taken.value();
        if (taken.value() > 0) deadline = Deadline::after(quiet);
        if (taken.value() == 0) backoff.pause();
    }
    EXPECT_LT(total, kFarTooMuch) << "the sender is never held up";
    return total;
}

}  // namespace pccl::transport::contract
