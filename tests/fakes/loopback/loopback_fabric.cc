// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/loopback/loopback_fabric.h"

#include "csrc/base/text/text.h"
#include "tests/fakes/loopback/links.h"
#include "tests/fakes/loopback/rma.h"

namespace pccl::transport::loopback {
namespace {

class LoopbackPendingConnect final : public PendingConnect {
   public:
    LoopbackPendingConnect(std::shared_ptr<LoopbackCall> call, std::unique_ptr<SendLink> link)
        : call_(std::move(call)), link_(std::move(link)) {}

    Result<std::unique_ptr<SendLink>> advance() override {
        PCCL_ASSIGN_OR_RETURN(const bool accepted, call_->is_accepted());
        return accepted ? std::move(link_) : std::unique_ptr<SendLink>();
    }
    [[nodiscard]] Status timeout_error() const override { return call_->timeout_error(); }

   private:
    const std::shared_ptr<LoopbackCall> call_;
    std::unique_ptr<SendLink> link_;
};

}  // namespace

std::shared_ptr<LoopbackFabric> LoopbackFabric::create(const FabricOptions& options) {
    return std::shared_ptr<LoopbackFabric>(new LoopbackFabric(options));
}

Result<LoopbackMember> LoopbackFabric::join(Waiter& waiter) {
    PCCL_ASSIGN_OR_RETURN(auto process, processes_->add(waiter, options_.faults));
    LoopbackMember member;
    member.control = std::make_unique<LoopbackControlPlane>(processes_, process);
    member.transport.reset(new LoopbackTransport(shared_from_this(), std::move(process)));
    return member;
}

void LoopbackFabric::kill(int process) {
    if (const auto found = processes_->at(process)) found->die();
}

LoopbackFabric::OnItsWay LoopbackFabric::make_pipe(const LinkRequest& request) {
    const std::lock_guard lock(mutex_);
    OnItsWay made{
        .number = pipes_++,
        .pipe = std::make_shared<Pipe>(
            PipeArgs{.request = request,
                     .capacity = options_.capacity,
                     .faults = options_.faults,
                     .clock = options_.clock,
                     .ordinal = links_[{request.source, request.destination, request.channel}]++})};
    std::erase_if(on_their_way_, [](const auto& entry) { return entry.second.expired(); });
    on_their_way_.emplace(made.number, made.pipe);
    return made;
}

std::shared_ptr<Pipe> LoopbackFabric::take_pipe(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = on_their_way_.find(number);
    if (found == on_their_way_.end()) return nullptr;
    auto pipe = found->second.lock();
    on_their_way_.erase(found);
    return pipe;
}

LoopbackTransport::LoopbackTransport(std::shared_ptr<LoopbackFabric> fabric,
                                     std::shared_ptr<Process> process)
    : fabric_(std::move(fabric)),
      process_(std::move(process)),
      one_sided_(std::make_shared<LoopbackRma>(process_)) {}

LoopbackTransport::~LoopbackTransport() { process_->die(); }

std::vector<std::string> LoopbackTransport::addresses() const {
    return {fabric_->processes_->place_of(*process_)};
}

Status LoopbackTransport::reaches(const PeerAddress& peer) const {
    return fabric_->processes_->find(peer.control).status();
}

Result<std::unique_ptr<PendingConnect>> LoopbackTransport::connect(const PeerAddress& peer,
                                                                   const LinkRequest& request,
                                                                   const Secret& secret) {
    PCCL_TRY(process_->live());
    PCCL_ASSIGN_OR_RETURN(const auto callee, fabric_->processes_->find(peer.control));
    const auto [number, pipe] = fabric_->make_pipe(request);
    const auto call = std::make_shared<LoopbackCall>();
    call->introduction = {.request = request,
                          .service = Service::kLink,
                          .transport = static_cast<std::uint8_t>(TransportKind::kLoopback),
                          .purpose = purpose_of(number)};
    call->secret = secret;
    call->where = fabric_->processes_->place_of(*callee);
    call->caller = process_;
    auto link = std::make_unique<LoopbackSendLink>(pipe, process_);
    callee->ring(call);
    return std::unique_ptr<PendingConnect>(
        std::make_unique<LoopbackPendingConnect>(call, std::move(link)));
}

void LoopbackTransport::accept(Arrival arrival, LinkReceiver& receiver) {
    const LinkRequest& request = arrival.introduction.request;
    auto pipe = fabric_->take_pipe(value_in<std::uint64_t>(arrival.introduction.purpose));
    if (pipe != nullptr)
        return receiver.accepted(request,
                                 std::make_unique<LoopbackRecvLink>(std::move(pipe), process_));
    receiver.refused(to_string(kind()), Status::unavailable(concat("rank ", request.source,
                                                                   " gave up opening a link")));
}

}  // namespace pccl::transport::loopback
