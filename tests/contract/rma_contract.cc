// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/rma_contract.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "csrc/transport/memory_descriptor.h"
#include "csrc/transport/rma/bundle.h"
#include "csrc/transport/rma/over_links.h"
#include "tests/fakes/connect.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/loopback/loopback_fabric.h"
#include "tests/fakes/threads_after_fork.h"

namespace pccl::transport::contract {
namespace {

template <typename T>
T require(Result<T> result) {
    EXPECT_TRUE(result.is_ok()) << result.status().to_string();
    if (!result.is_ok()) std::abort();
    return std::move(result).value();
}

void send(int fd, const std::string& text) {
    const std::size_t size = text.size();
    EXPECT_EQ(::write(fd, &size, sizeof size), static_cast<ssize_t>(sizeof size));
    EXPECT_EQ(::write(fd, text.data(), size), static_cast<ssize_t>(size));
}

/// Reads from a process that may have ended, whose pipe this process holds open, too.
void read_in_time(int fd, void* into, std::size_t size) {
    pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
    const int milliseconds = static_cast<int>(std::chrono::milliseconds(fakes::kTimeout).count());
    const bool came = ::poll(&readable, 1, milliseconds) == 1 &&
                      ::read(fd, into, size) == static_cast<ssize_t>(size);
    EXPECT_TRUE(came) << "the other process has ended, or hangs";
    if (!came) std::abort();
}

std::string receive(int fd) {
    std::size_t size = 0;
    read_in_time(fd, &size, sizeof size);
    std::string text(size, '\0');
    read_in_time(fd, text.data(), size);
    return text;
}

std::string text_of(const PeerAddress& address) {
    ByteWriter out;
    address.write(out);
    return out.take();
}

PeerAddress address_in(const std::string& text) {
    ByteReader in(text);
    return require(PeerAddress::read(in));
}

}  // namespace

Result<MemberMaker> loopback_world(const loopback::FaultPlan& faults) {
    auto fabric = loopback::LoopbackFabric::create({.faults = faults});
    return MemberMaker([fabric](Waiter& own) { return fakes::loopback_member(*fabric, own); });
}

fakes::LateCudaDriver& gpus() {
    static auto* const driver = new fakes::LateCudaDriver;  // children of fork() have it, too
    return *driver;
}

Registered::Registered(RmaTransport& transport, Mapping mapping, int gpu)
    : mapping_(std::move(mapping)),
      registration_(
          require(transport.add({.data = mapping_.memory().data(),
                                 .bytes = mapping_.memory().size(),
                                 .kind = gpu < 0 ? abi::MemoryKind::kHost : abi::MemoryKind::kGpu,
                                 .device = gpu,
                                 .file = gpu < 0 ? mapping_.file() : -1}))),
      descriptor_(registration_->descriptor()) {}

RmaEnd::RmaEnd(const MemberMaker& make, const RmaCandidate& candidate, Rank self)
    : process(std::make_unique<Process>(make)),
      rma(candidate.one_sided ? candidate.one_sided() : require(process->transport().one_sided())),
      in_files(candidate.in_files),
      gpu(candidate.gpus.at(static_cast<std::size_t>(self))),
      lanes(candidate.lanes),
      helpers(candidate.helpers) {
    process->join_group(RmaGroup::kId, RmaGroup::kSecret);
    process->start_accepting();
}

Registered RmaEnd::memory(std::size_t bytes, std::byte value) const {
    const bool in_file = in_files || gpu >= 0;
    auto mapping =
        require(in_file ? Mapping::shareable("contract", bytes) : Mapping::anonymous(bytes));
    if (value != std::byte{}) std::ranges::fill(mapping.memory(), value);
    if (gpu >= 0) gpus().adopt(mapping, gpu);
    return {*rma, std::move(mapping), gpu};
}

void RmaGroup::connect(RmaEnd& end, Rank self, const PeerAddress& peer) {
    const auto open = [&](ChannelId channel) {
        const LinkRequest request{.group = kId,
                                  .source = self,
                                  .destination = 1 - self,
                                  .channel = channel,
                                  .group_size = 2};
        RmaStreams streams;
        streams.out = require(fakes::connect(end.process->transport(), peer, request, kSecret,
                                             fakes::test_deadline()));
        streams.in = end.process->wait_for_link(1 - self, channel);
        return streams;
    };
    if (end.lanes == 0) {
        end.link = require(end.rma->connect(open(0)));
        return;
    }
    auto& over_links = dynamic_cast<RmaOverLinks&>(*end.rma);
    auto bundle = over_links.connect_bundle(open(0), {.most = end.helpers});
    for (std::size_t lane = 0; lane < end.lanes; ++lane)
        bundle->add_lane(lane, open(static_cast<ChannelId>(lane) + 1));
    end.link = std::move(bundle);
}

void RmaContract::TearDown() { sys::cuda::let_stand_in(nullptr); }

void RmaContract::SetUp() {
    sys::cuda::let_stand_in(GetParam().gpus == RmaCandidate().gpus ? nullptr : &gpus());
    auto world = GetParam().new_world();
    if (!world.is_ok()) GTEST_SKIP() << world.status().to_string();
    make_ = std::move(world.value());
    for (Rank rank = 0; rank < 2; ++rank)
        ends_.push_back(std::make_unique<RmaEnd>(make_, GetParam(), rank));
    std::thread other([this] { RmaGroup::connect(target(), 1, initiator().process->address()); });
    RmaGroup::connect(initiator(), 0, target().process->address());
    other.join();
}

void RmaContract::pump(const std::function<bool()>& look) {
    const bool done = eventually(initiator().process->waiter(), [&] {
        if (target().link != nullptr) static_cast<void>(target().link->advance());
        return look();
    });
    EXPECT_TRUE(done) << "nothing moves any more";
}

Status RmaContract::complete(RmaOp op, std::vector<RmaPiece> pieces) {
    std::span<const RmaPiece> rest(pieces);
    std::size_t posts = 0;
    Status failure;
    const auto poll = [&] {
        std::vector<RmaCompletion> completed(8);
        const auto count = initiator().link->poll(completed);
        if (!count.is_ok()) {
            failure = count.status();
            return false;
        }
        for (std::size_t i = 0; i < *count; ++i)
            if (failure.is_ok()) failure = completed[i].status;
        posts -= *count;
        return true;
    };
    pump([&] {
        const auto taken = rest.empty() ? Result<std::size_t>(std::size_t{0})
                                        : initiator().link->post(op, rest, 1);
        if (!taken.is_ok()) {
            failure = taken.status();
            return true;
        }
        if (*taken > 0) ++posts;
        rest = rest.subspan(*taken);
        return !poll() || (rest.empty() && posts == 0);
    });
    return failure;
}

Status RmaContract::write(const Registered& from, const abi::MemoryDescriptor& to,
                          std::size_t bytes) {
    return complete(RmaOp::kWrite, {{.local = from.registration(), .remote = &to, .bytes = bytes}});
}

Status RmaContract::read(const Registered& into, const abi::MemoryDescriptor& from,
                         std::size_t bytes) {
    return complete(RmaOp::kRead,
                    {{.local = into.registration(), .remote = &from, .bytes = bytes}});
}

Status RmaContract::transfer(RmaOp op, const Registered& mine,
                             const abi::MemoryDescriptor& theirs) {
    const RmaPiece piece{
        .local = mine.registration(), .remote = &theirs, .bytes = mine.bytes().size()};
    PCCL_TRY(initiator().link->post(op, {&piece, 1}, 1).status());
    const auto completed = next_completion(*initiator().link, [] {});
    return completed.is_ok() ? completed->status : completed.status();
}

void RmaContract::repeat_until_refused(RmaOp op, const Registered& mine,
                                       const abi::MemoryDescriptor& theirs,
                                       const std::function<void()>& look) {
    const Deadline deadline = fakes::test_deadline();
    while (transfer(op, mine, theirs).is_ok()) {
        look();
        if (deadline.passed()) return ADD_FAILURE() << "nobody notices that the owner has gone";
    }
}

std::string RmaContract::await_notification() {
    std::string text;
    std::vector<RmaCompletion> ignored(1);
    pump([&] {
        static_cast<void>(initiator().link->advance());
        auto notification = target().link->next_notification();
        EXPECT_TRUE(notification.is_ok()) << notification.status().to_string();
        if (!notification.is_ok() || !*notification) return !notification.is_ok();
        text.assign(reinterpret_cast<const char*>((*notification)->data()),
                    (*notification)->size());
        return true;
    });
    return text;
}

Result<RmaCompletion> next_completion(RmaLink& link, const std::function<void()>& meanwhile) {
    const Deadline deadline = fakes::test_deadline();
    RmaCompletion completed;
    while (!deadline.passed()) {
        PCCL_ASSIGN_OR_RETURN(const std::size_t count, link.poll({&completed, 1}));
        if (count == 1) return completed;
        meanwhile();
        std::this_thread::yield();
    }
    return Status::timeout("nothing is complete");
}

std::span<const std::byte> notification_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

bool are_all(std::span<const std::byte> bytes, std::byte value) {
    return std::ranges::all_of(bytes, [value](std::byte each) { return each == value; });
}

Messages::Messages() {
    EXPECT_EQ(::pipe(fds_.data()), 0);
    EXPECT_EQ(::pipe(fds_.data() + 2), 0);
}

Messages::~Messages() {
    for (const int fd : fds_) ::close(fd);
}

void Messages::send_to_parent(const std::string& text) { send(fds_[1], text); }
void Messages::send_to_child(const std::string& text) { send(fds_[3], text); }
std::string Messages::of_child() { return receive(fds_[0]); }
std::string Messages::of_parent() { return receive(fds_[2]); }

void RmaProcesses::SetUp() {
    sys::cuda::let_stand_in(GetParam().gpus == RmaCandidate().gpus ? nullptr : &gpus());
    if (const auto world = GetParam().new_world(); !world.is_ok())
        GTEST_SKIP() << world.status().to_string();
}

void RmaProcesses::start(const ProcessBody& body) {
    child_.emplace([&]() -> int {
        RmaEnd end(GetParam().new_world().value(), GetParam(), 1);
        const Registered memory = end.memory(kBytes);
        std::ranges::fill(memory.bytes(), kOld);
        messages_.send_to_parent(text_of(end.process->address()));
        messages_.send_to_parent(serialise(memory.descriptor()));
        const PeerAddress parent = address_in(messages_.of_parent());
        const auto parents = parse_memory_descriptor(messages_.of_parent());
        RmaGroup::connect(end, 1, parent);
        for (;;) body(end, *parents);
    });
    ends_.push_back(std::make_unique<RmaEnd>(GetParam().new_world().value(), GetParam(), 0));
    mine_.emplace(initiator().memory(kBytes));
    const PeerAddress address = address_in(messages_.of_child());
    theirs_ = parse_memory_descriptor(messages_.of_child()).value();
    messages_.send_to_child(text_of(initiator().process->address()));
    messages_.send_to_child(serialise(mine_->descriptor()));
    RmaGroup::connect(initiator(), 0, address);
}

}  // namespace pccl::transport::contract
