// SPDX-License-Identifier: Apache-2.0

// What a program of somebody else does with an installed PCCL: each class of its headers.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/capsule.h>
#include <pccl/cluster.h>
#include <pccl/collective.h>
#include <pccl/communicator.h>
#include <pccl/deadline.h>
#include <pccl/device_group.h>
#include <pccl/memory.h>
#include <pccl/operator.h>
#include <pccl/phases.h>
#include <pccl/session.h>
#include <pccl/status.h>
#include <pccl/store.h>
#include <pccl/transfer.h>
#include <pccl/types.h>

namespace {

using pccl::Block;
using pccl::Deadline;
using pccl::Status;
using pccl::StatusCode;
using pccl::p2p::Session;

Deadline patience() { return Deadline::after(std::chrono::seconds(20)); }

Status expect(bool is_right, std::string_view what) {
    return is_right ? Status::ok() : Status::internal("not as expected: " + std::string(what));
}

/// A message, a write with a notification, and a read of two blocks.
Status between_sessions() {
    std::array<char, 32> outgoing{"hello from a"};
    std::array<char, 32> incoming{};
    PCCL_ASSIGN_OR_RETURN(const auto a, Session::create({.name = "a"}));
    PCCL_ASSIGN_OR_RETURN(const auto b, Session::create({.name = "b"}));
    PCCL_TRY(a->load_remote_conn_info(b->connection_info()).status());
    PCCL_TRY(b->load_remote_conn_info(a->connection_info()).status());
    PCCL_ASSIGN_OR_RETURN(const auto from,
                          a->register_memory(std::as_writable_bytes(std::span(outgoing))));
    PCCL_ASSIGN_OR_RETURN(const auto into,
                          b->register_memory(std::as_writable_bytes(std::span(incoming))));
    PCCL_ASSIGN_OR_RETURN(auto sends, a->create_transfer("b"));
    PCCL_ASSIGN_OR_RETURN(auto receives, b->create_transfer("a"));
    PCCL_TRY(receives.post_recv({into, {0, incoming.size()}}, 1, patience()).status());
    PCCL_TRY(sends.post_send({from, {0, outgoing.size()}}, 1, patience()).status());
    PCCL_TRY(receives.wait(patience()));
    PCCL_TRY(sends.wait(patience()));
    std::printf("%s\n", incoming.data());

    PCCL_ASSIGN_OR_RETURN(const auto theirs, a->import_memory("b", into->serialised_descriptor()));
    PCCL_TRY(expect(theirs.bytes() == into->bytes() && !theirs.is_gpu(), "the descriptor"));
    const std::string done = "written";
    outgoing = {"hello again"};
    PCCL_ASSIGN_OR_RETURN(const auto write, a->write({from, {0, 32}}, {theirs, {0, 32}},
                                                     std::as_bytes(std::span(done))));
    PCCL_TRY(write.wait(patience()));
    const auto received = b->await_notifications(patience());
    PCCL_TRY(expect(received.size() == 1 && received.front().from == "a", "the notification"));
    PCCL_TRY(expect(incoming == outgoing, "the bytes of a write"));

    incoming = {"0123456789"};
    const std::vector<pccl::p2p::Extent> blocks{{0, 2}, {4, 2}};
    PCCL_ASSIGN_OR_RETURN(const auto plan, pccl::p2p::Plan::make({from, blocks}, {theirs, blocks}));
    PCCL_ASSIGN_OR_RETURN(const auto read, a->post(pccl::RmaOp::kRead, plan));
    PCCL_TRY(read.wait(patience()));
    PCCL_TRY(expect(read.stats().blocks == 2, "the blocks of a read"));
    return expect(std::string_view(outgoing.data()) == "01ll45again", "the bytes of a read");
}

/// A group of one rank.
Status in_a_group() {
    PCCL_ASSIGN_OR_RETURN(const auto comm, pccl::Communicator::create({.name = "alone"}));
    PCCL_ASSIGN_OR_RETURN(const auto mine, comm->allocate_on_all_ranks("halo", 4 * sizeof(float)));
    const std::span<float> values(reinterpret_cast<float*>(mine.data()), 4);
    values[3] = 5;
    const Block block{mine.data(), values.size()};
    const pccl::Collective sum{.inputs = {&block, 1}, .outputs = {&block, 1}};
    PCCL_TRY(comm->run(sum));
    PCCL_ASSIGN_OR_RETURN(const pccl::Event event, comm->submit(sum));
    PCCL_TRY(event.wait(patience()));
    PCCL_ASSIGN_OR_RETURN(const pccl::Operator bound, pccl::Operator::create(comm, sum));
    PCCL_TRY(bound.run());
    PCCL_ASSIGN_OR_RETURN(const pccl::Event again, bound.execute());
    PCCL_TRY(again.wait(patience()));
    PCCL_TRY(expect(values[3] == 5, "the sum over one rank"));
    PCCL_TRY(expect(comm->sequence() == 5, "five collectives: an allocation and four sums"));
    PCCL_TRY(expect(comm->workspaces().at("halo") == 16, "the workspace"));
    PCCL_ASSIGN_OR_RETURN(const auto held, comm->hold_remote("halo", 0));
    PCCL_TRY(comm->release_workspace("halo"));
    PCCL_TRY(expect(held.memory.size() == 16, "the held part"));
    PCCL_ASSIGN_OR_RETURN(const auto health, comm->survey(std::chrono::seconds(1)));
    PCCL_TRY(expect(health.front().state == pccl::PeerHealth::State::kHere, "the health"));
    PCCL_TRY(expect(comm->run({.kind = pccl::CollectiveKind::kBroadcast, .root = 7}).code() ==
                        StatusCode::kInvalidArgument,
                    "a root out of range"));
    PCCL_TRY(expect(comm->load("/nonexistent.capsule").status().code() != StatusCode::kOk,
                    "a capsule that is not there"));
    return comm->shutdown();
}

Status of_capsules() {
    const pccl::Result<pccl::Capsule> none = pccl::Capsule::parse("no capsule");
    PCCL_TRY(expect(none.status().code() == StatusCode::kInvalidArgument, "bytes of no capsule"));
    constexpr std::string_view kPlan = R"(<algo name="pair" proto="Simple" nchannels="1"
        nchunksperloop="2" ngpus="2" coll="allgather" inplace="0">
      <gpu id="0" i_chunks="1" o_chunks="2" s_chunks="0">
        <tb id="0" send="1" recv="1" chan="0">
          <step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1"
                deps="-1" hasdep="0"/>
          <step s="1" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1"
                deps="-1" hasdep="0"/>
          <step s="2" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1"
                deps="-1" hasdep="0"/>
        </tb>
      </gpu>
      <gpu id="1" i_chunks="1" o_chunks="2" s_chunks="0">
        <tb id="0" send="0" recv="0" chan="0">
          <step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1"
                deps="-1" hasdep="0"/>
          <step s="1" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1"
                deps="-1" hasdep="0"/>
          <step s="2" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1"
                deps="-1" hasdep="0"/>
        </tb>
      </gpu>
    </algo>)";
    PCCL_ASSIGN_OR_RETURN(const auto pair, pccl::Capsule::import_msccl(kPlan, "pair.xml"));
    PCCL_ASSIGN_OR_RETURN(const auto kind, pair.kind());
    PCCL_TRY(expect(kind == pccl::CollectiveKind::kAllGather, "the collective of a capsule"));
    PCCL_ASSIGN_OR_RETURN(const auto same, pccl::Capsule::parse(pair.bytes()));
    PCCL_TRY(expect(same.digest() == pair.digest() && same.name() == "pair", "its bytes"));
    PCCL_TRY(expect(same.ranks() == std::vector{2} && same.signer().empty(), "its ranks"));
    PCCL_TRY(same.verify());
    return pair.export_msccl(2).status();
}

Status of_phases() {
    namespace cluster = pccl::cluster;
    PCCL_ASSIGN_OR_RETURN(const auto four,
                          cluster::Cluster::parse(R"({"devices": [{}, {}, {}, {}]})", "four"));
    PCCL_TRY(four->register_phase({.name = "ring", .links = cluster::ring_of(4)}));
    PCCL_ASSIGN_OR_RETURN(const cluster::Report report, four->switch_phase("ring"));
    PCCL_TRY(expect(report.ending == cluster::Ending::kSwitched, "the end of a switch"));
    return expect(four->current() == "ring", "the phase");
}

Status at_stores() {
    const auto none = pccl::open_store("here", 0, 1, patience());
    return expect(none.status().code() == StatusCode::kInvalidArgument, "a URL of no store");
}

/// Where there is a GPU, a sum over one; where there is none, the reason.
Status on_gpus() {
    const auto memory = pccl::DeviceMemory::allocate(0, 1024);
    if (!memory.is_ok()) {
        const auto group = pccl::DeviceGroup::create({});
        PCCL_TRY(expect(!group.is_ok(), "a group without a GPU"));
        return expect(memory.status().code() == StatusCode::kUnavailable,
                      memory.status().to_string());
    }
    PCCL_ASSIGN_OR_RETURN(const auto group, pccl::DeviceGroup::create({}));
    const Block block{(*memory)->data(), 256};
    PCCL_TRY(group->launch({.inputs = {&block, 1}, .outputs = {&block, 1}}, nullptr));
    PCCL_TRY((*memory)->wait());
    return group->health();
}

Status use_all() {
    for (const auto& part :
         {&between_sessions, &in_a_group, &of_capsules, &of_phases, &at_stores, &on_gpus})
        PCCL_TRY(part());
    return Status::ok();
}

}  // namespace

int main() {
    const Status status = use_all();
    if (!status.is_ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
    if (status.is_ok()) std::printf("all parts work\n");
    return status.is_ok() ? 0 : 1;
}
