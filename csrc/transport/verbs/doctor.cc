// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/doctor.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/bytes.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/verbs/device.h"
#include "csrc/transport/verbs/gpu_report.h"
#include "csrc/transport/verbs/lanes.h"
#include "csrc/transport/verbs/port_choice.h"
#include "csrc/transport/verbs/queue_pair.h"

namespace pccl::transport::verbs {
namespace {

using sys::verbs::DeviceInfo;
using sys::verbs::GidType;

// Memory of the examination, more than a link registers. Its first part is the source of writes.
constexpr std::size_t kTried = 4 * kMiB;
constexpr std::size_t kShort = 64;        // fits into one packet of any MTU
constexpr std::size_t kLong = 64 * kKiB;  // takes several
constexpr std::size_t kOwnTarget = kMiB;  // of the port's writes to itself
constexpr std::size_t kPeerTarget = 2 * kMiB;
constexpr std::size_t kMostShown = 16;
constexpr QueueDepths kFewRequests{.sends = 8, .receives = 4};
constexpr std::size_t kFullMtu = 4096;

std::size_t bytes_of_mtu(std::uint8_t code) { return std::size_t{128} << code; }

const char* name_of_layer(bool is_ethernet) { return is_ethernet ? "Ethernet" : "InfiniBand"; }

std::byte pattern_at(std::size_t index) { return static_cast<std::byte>(index * 7 + 0x5a); }

/// Description of the end of an examination: kind of its GID, queue pair and memory.
struct DoctorEnd {
    GidType gid = GidType::kInfiniband;
    LinkEnd link;

    [[nodiscard]] std::string serialise() const {
        ByteWriter out;
        out.u8(static_cast<std::uint8_t>(gid));
        out.text(link.serialise());
        return out.take();
    }
    /// Parses bytes of any origin.
    static Result<DoctorEnd> parse(std::string_view bytes) {
        ByteReader in(bytes);
        std::uint8_t type = 0;
        std::string link;
        PCCL_TRY(in.u8(type));
        PCCL_TRY(in.text(link, LinkEnd::kLongest));
        PCCL_TRY(in.finish());
        DoctorEnd end;
        PCCL_ASSIGN_OR_RETURN(end.link, LinkEnd::parse(link));
        end.gid = static_cast<GidType>(type);
        if (type <= static_cast<std::uint8_t>(GidType::kRoceV2) && end.link.lanes.size() == 1 &&
            end.link.memory.size() == 1 && end.link.memory.front().bytes == kTried)
            return end;
        return Status::invalid_argument("no end of an examination of RDMA");
    }
};

/// Writes of one queue pair, and their completions.
class Writes {
   public:
    Writes(QueuePair& pair, const LinkMemory& memory) : pair_(pair), memory_(memory) {}

    /// Writes to `target`; `with_immediate`: the other end gets a completion.
    Status post(std::uint64_t target, std::uint32_t key, std::size_t bytes, bool with_immediate) {
        ibv_sge piece{.addr = reinterpret_cast<std::uint64_t>(memory_.data()),
                      .length = static_cast<std::uint32_t>(bytes),
                      .lkey = memory_.local_key(0)};
        ibv_send_wr request{};
        request.wr_id = ++posted_;
        request.sg_list = &piece;
        request.num_sge = 1;
        request.send_flags = IBV_SEND_SIGNALED;
        request.opcode = with_immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
        request.wr.rdma.remote_addr = target;
        request.wr.rdma.rkey = key;
        return pair_.post(request);
    }
    /// Takes completions; the error is that of the first that failed.
    Status poll() {
        while (true) {
            PCCL_ASSIGN_OR_RETURN(const auto completion, pair_.next());
            if (!completion) return Status::ok();
            if (completion->status != IBV_WC_SUCCESS)
                return Status::unavailable(explain(*completion));
            if ((completion->id & QueuePair::kReceive) != 0)
                has_received_ = true;
            else
                ++completed_;
        }
    }
    [[nodiscard]] bool are_complete() const { return completed_ == posted_; }
    [[nodiscard]] bool has_received() const { return has_received_; }

   private:
    QueuePair& pair_;
    const LinkMemory& memory_;
    std::uint64_t posted_ = 0;
    std::uint64_t completed_ = 0;
    bool has_received_ = false;
};

class VerbsDoctor final : public RdmaDoctor {
   public:
    explicit VerbsDoctor(std::unique_ptr<Waiter> waiter) : waiter_(std::move(waiter)) {}

    Result<std::string> run(RdmaStep step, std::string_view peer, Deadline deadline) override {
        PCCL_TRY(check_order(step, peer));
        switch (step) {
            case RdmaStep::kLibrary:
                return find_library();
            case RdmaStep::kDevice:
                return find_devices();
            case RdmaStep::kPort:
                return choose_port();
            case RdmaStep::kGid:
                return choose_gid();
            case RdmaStep::kMemory:
                return register_memory();
            case RdmaStep::kMtu:
                return compare_mtu(peer);
            case RdmaStep::kReach:
                return reach(peer);
            case RdmaStep::kLoopback:
                return write_to_itself(deadline);
            case RdmaStep::kWrite:
                return write_to_peer(peer, deadline);
            case RdmaStep::kGpu:
                return concat(port_->adapter->name(), " reaches memory of GPUs ",
                              try_gpu_access(*port_->adapter));
        }
        return Status::invalid_argument("no step of the examination");
    }

    Result<std::string> end() override {
        PCCL_TRY(check_order(RdmaStep::kMtu, {}));
        if (pair_ == nullptr) {
            PCCL_ASSIGN_OR_RETURN(pair_, QueuePair::create(port_, kFewRequests));
            PCCL_TRY(pair_->post_receives(kFewRequests.receives));
        }
        return DoctorEnd{.gid = port_->gid.type,
                         .link = {.receives = static_cast<std::uint32_t>(kFewRequests.receives),
                                  .memory = {memory_->range()},
                                  .lanes = {{.device = 0, .pair = pair_->address()}}}}
            .serialise();
    }

   private:
    [[nodiscard]] Status check_order(RdmaStep step, std::string_view peer) const {
        const bool needs_end = step == RdmaStep::kReach || step == RdmaStep::kWrite;
        const bool is_early =
            (step >= RdmaStep::kPort && devices_.empty()) || (step >= RdmaStep::kGid && !judged_) ||
            (step >= RdmaStep::kMemory && port_ == nullptr) ||
            (step >= RdmaStep::kMtu && !memory_) || (needs_end && pair_ == nullptr);
        if (is_early)
            return Status::invalid_argument(concat(
                "the step ", kRdmaSteps[static_cast<std::size_t>(step)], " needs those before it"));
        if (needs_end && peer.empty())
            return Status::invalid_argument(
                concat("the step ", kRdmaSteps[static_cast<std::size_t>(step)], " needs a peer"));
        return Status::ok();
    }

    static Result<std::string> find_library() {
        PCCL_ASSIGN_OR_RETURN(const auto* const library, sys::verbs::libibverbs());
        return library->version.empty() ? library->path
                                        : concat(library->path, ", rdma-core ", library->version);
    }

    Result<std::string> find_devices() {
        PCCL_ASSIGN_OR_RETURN(const auto names, sys::verbs::list_device_names());
        if (names.empty())
            return Status::unavailable(
                "this machine shows no RDMA device: load the driver of the card (`rdma link` and "
                "`ibv_devices` list devices), and pass /dev/infiniband to a container");
        Status refusal;
        for (const std::string& name : names) {
            const auto device = sys::verbs::Device::open(name);
            if (device.is_ok())
                devices_.push_back((*device)->info());
            else if (refusal.is_ok())
                refusal = device.status();
        }
        if (devices_.empty()) return refusal;
        return some_of(devices_, kMostShown, [](const DeviceInfo& device) { return device.name; });
    }

    Result<std::string> choose_port() {
        PCCL_ASSIGN_OR_RETURN(const auto judged, judge_ports_of_process(devices_));
        std::string reasons;
        for (const JudgedPort& port : judged) {
            // A port with a GID comes before one without.
            if (port.port.is_ok() && (!judged_ || (!judged_->is_usable() && port.is_usable())))
                judged_ = port;
            if (!port.port.is_ok()) reasons += concat("; ", port.name(), ": ", port.port.message());
        }
        if (!judged_)
            return Status::unavailable(concat(
                "no RDMA port is usable", reasons.empty() ? "; no device has a port" : reasons));
        const sys::verbs::PortInfo& info = judged_->info;
        return concat(judged_->name(), ", ", name_of_layer(info.is_ethernet), ", ", info.state,
                      info.gigabits > 0 ? concat(", ", info.gigabits, " Gb/s") : std::string());
    }

    Result<std::string> choose_gid() {
        if (!judged_->gid.is_ok())
            return judged_->gid.with_message(concat(judged_->name(), ": ", judged_->gid.message()));
        PCCL_ASSIGN_OR_RETURN(auto adapter, Adapter::open(judged_->device, *waiter_));
        port_ = std::make_shared<Port>(Port{.adapter = std::move(adapter),
                                            .info = judged_->info,
                                            .gid = judged_->chosen.entry,
                                            .reason = judged_->chosen.reason});
        return concat("index ", port_->gid.index, " of ", port_->info.gids.size(), ", ",
                      port_->gid.address(), " (", port_->reason, ")");
    }

    Result<std::string> register_memory() {
        PCCL_ASSIGN_OR_RETURN(auto mapping, Mapping::anonymous(kTried));
        const std::vector<std::shared_ptr<Adapter>> adapters{port_->adapter};
        PCCL_ASSIGN_OR_RETURN(memory_,
                              LinkMemory::create(std::move(mapping), adapters, Access::kPeer));
        for (std::size_t i = 0; i < kLong; ++i) memory_->data()[i] = pattern_at(i);
        return concat(kTried / kMiB, " MiB are registered");
    }

    Result<std::string> compare_mtu(std::string_view peer) const {
        const std::size_t here = port_->info.mtu_bytes;
        const std::string hint = port_->info.is_ethernet && here < kFullMtu
                                     ? "; an MTU of 4200 of the network interfaces allows 4096"
                                     : "";
        if (peer.empty()) return concat(here, " bytes", hint);
        PCCL_ASSIGN_OR_RETURN(const DoctorEnd other, DoctorEnd::parse(peer));
        const QueuePairAddress& pair = other.link.lanes.front().pair;
        if (pair.is_ethernet != port_->info.is_ethernet)
            return Status::unavailable(concat(port_->name(), " has the link layer ",
                                              name_of_layer(port_->info.is_ethernet),
                                              ", the peer's port ", name_of_layer(pair.is_ethernet),
                                              "; choose ports of one network by PCCL_IB_HCA"));
        if (other.gid != port_->gid.type)
            return Status::unavailable(concat(
                "the GID of ", port_->name(), " is ", to_string(port_->gid.type), ", the peer's ",
                to_string(other.gid), "; choose GIDs of one kind by PCCL_IB_GID_INDEX"));
        return concat(here, " bytes here, ", bytes_of_mtu(pair.mtu), " at the peer", hint);
    }

    Result<std::string> reach(std::string_view peer) {
        PCCL_ASSIGN_OR_RETURN(const DoctorEnd other, DoctorEnd::parse(peer));
        const QueuePairAddress& pair = other.link.lanes.front().pair;
        PCCL_TRY(pair_->connect(pair));
        const sys::verbs::GidEntry gid{.index = 0, .gid = pair.gid, .type = other.gid};
        return concat("a queue pair of ", port_->name(), " (", port_->gid.address(),
                      ") is connected to the peer's (", gid.address(), ")");
    }

    Result<std::string> write_to_itself(Deadline deadline) {
        PCCL_ASSIGN_OR_RETURN(const auto from, QueuePair::create(port_, kFewRequests));
        PCCL_ASSIGN_OR_RETURN(const auto to, QueuePair::create(port_, kFewRequests));
        PCCL_TRY(to->post_receives(kFewRequests.receives));
        PCCL_TRY(from->connect(to->address()).with_context("to itself"));
        PCCL_TRY(to->connect(from->address()).with_context("to itself"));
        Writes outgoing(*from, *memory_);
        Writes incoming(*to, *memory_);
        PeerRange own = memory_->range();
        own.address += kOwnTarget;
        const std::string path = concat(port_->name(), " cannot write to itself");
        PCCL_TRY(write(outgoing, incoming, own, path, deadline));
        PCCL_TRY(check_content(kOwnTarget));
        return concat(kLong / kKiB, " KiB are written by ", port_->name(), " to itself");
    }

    Result<std::string> write_to_peer(std::string_view peer, Deadline deadline) {
        PCCL_ASSIGN_OR_RETURN(const DoctorEnd other, DoctorEnd::parse(peer));
        PeerRange theirs = other.link.memory.front();
        theirs.address += kPeerTarget;
        Writes writes(*pair_, *memory_);
        const std::string path = concat(port_->name(), " cannot write to the peer");
        PCCL_TRY(write(writes, writes, theirs, path, deadline));
        PCCL_TRY(check_content(kPeerTarget));
        return concat(kLong / kKiB, " KiB are written to the peer, and as many from it");
    }

    /// Writes few bytes, then many with an immediate, and waits for the immediate of the other end.
    Status write(Writes& outgoing, Writes& incoming, const PeerRange& target,
                 const std::string& path, Deadline deadline) {
        const std::uint32_t key = target.keys.front();
        PCCL_TRY(outgoing.post(target.address, key, kShort, false));
        const auto complete = [&] { return outgoing.are_complete(); };
        const Status few = wait(outgoing, incoming, complete, deadline);
        if (!few.is_ok())
            return few.with_message(concat(path, ": ", few.message(), advice_for_packets()));
        PCCL_TRY(outgoing.post(target.address, key, kLong, true));
        const Status many = wait(outgoing, incoming, complete, deadline);
        if (!many.is_ok())
            return many.with_message(
                concat(path, " in packets of ", port_->info.mtu_bytes, " bytes, although ", kShort,
                       " bytes arrive: ", many.message(),
                       "; raise the MTU of the switches between, or lower that of the network "
                       "interfaces of both hosts"));
        Status arrived =
            wait(outgoing, incoming, [&] { return incoming.has_received(); }, deadline);
        if (arrived.is_ok()) return arrived;
        return arrived.with_message(
            concat("no write of the peer reaches ", port_->name(), ": ", arrived.message()));
    }

    Status wait(Writes& outgoing, Writes& incoming, const std::function<bool()>& is_over,
                Deadline deadline) {
        Backoff backoff(*waiter_);
        while (true) {
            PCCL_TRY(outgoing.poll());
            PCCL_TRY(incoming.poll());
            if (is_over()) return Status::ok();
            PCCL_TRY(port_->adapter->check_port(port_->info.number));
            if (deadline.passed()) return Status::timeout("nothing came in time");
            backoff.pause();
        }
    }

    [[nodiscard]] std::string advice_for_packets() const {
        if (!port_->info.is_ethernet) return "; look at the subnet manager and at the cables";
        return port_->gid.type == GidType::kRoceV2
                   ? "; let UDP port 4791 pass the firewalls of both hosts, and check "
                     "PCCL_IB_GID_INDEX of both"
                   : "; RoCE v1 passes no router: check PCCL_IB_GID_INDEX of both hosts";
    }

    [[nodiscard]] Status check_content(std::size_t at) const {
        const std::byte* const arrived = memory_->data() + at;
        for (std::size_t i = 0; i < kLong; ++i)
            if (arrived[i] != pattern_at(i))
                return Status::internal(
                    concat("byte ", i, " of a write to ", port_->name(),
                           " is wrong, although it completed: look for a fault of the device"));
        return Status::ok();
    }

    const std::unique_ptr<Waiter> waiter_;  // outlives all below
    std::vector<DeviceInfo> devices_;
    std::optional<JudgedPort> judged_;
    std::shared_ptr<Port> port_;
    std::optional<LinkMemory> memory_;
    std::unique_ptr<QueuePair> pair_;  // to the peer
};

}  // namespace

Result<std::unique_ptr<RdmaDoctor>> make_rdma_doctor() {
    PCCL_ASSIGN_OR_RETURN(auto waiter, Waiter::create());
    return std::unique_ptr<RdmaDoctor>(std::make_unique<VerbsDoctor>(std::move(waiter)));
}

}  // namespace pccl::transport::verbs
