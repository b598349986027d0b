#include "csrc/transport/loopback/loopback_fabric.h"

#include <unistd.h>

#include <charconv>

#include "csrc/base/text.h"
#include "csrc/transport/loopback/links.h"
#include "csrc/transport/loopback/rma.h"

namespace pccl::transport::loopback {
namespace {

void answer(const std::shared_ptr<Process>& process, Call& call, Acceptor& acceptor) {
    auto secret = acceptor.secret_of(call.request.group);
    if (!acceptor.serves(call.request)) secret.reset();
    if (secret != call.secret) {
        acceptor.refused(to_string(TransportKind::kLoopback),
                         Status::invalid_argument(concat("rank ", call.request.source,
                                                         " does not know the group's secret")));
        return call.finish(Call::Outcome::kRefused);
    }
    acceptor.accepted(call.request, std::make_unique<LoopbackRecvLink>(call.pipe, process));
    call.finish(Call::Outcome::kAccepted);
}

void answer_all(const std::shared_ptr<Process>& process, Acceptor& acceptor) {
    for (const auto& call : process->take_calls()) answer(process, *call, acceptor);
}

class LoopbackDial final : public Dial {
   public:
    LoopbackDial(std::shared_ptr<Call> call, std::unique_ptr<SendLink> link, std::string address)
        : call_(std::move(call)), link_(std::move(link)), address_(std::move(address)) {}

    Result<std::unique_ptr<SendLink>> advance() override {
        switch (call_->outcome.load()) {
            case Call::Outcome::kAccepted:
                return std::move(link_);
            case Call::Outcome::kPending:
                return std::unique_ptr<SendLink>();
            case Call::Outcome::kRefused:
                return Status::peer_lost(peer(), concat(name(), ": it refused the connection"));
            case Call::Outcome::kNobody:
                break;
        }
        return Status::peer_lost(peer(), concat(name(), ": nobody is there"));
    }
    [[nodiscard]] Status late() const override {
        return Status::timeout(concat(name(), " did not answer in time"), peer());
    }

   private:
    [[nodiscard]] Rank peer() const { return call_->request.destination; }
    [[nodiscard]] std::string name() const { return concat("rank ", peer(), " at ", address_); }

    const std::shared_ptr<Call> call_;
    std::unique_ptr<SendLink> link_;
    const std::string address_;
};

}  // namespace

std::shared_ptr<LoopbackFabric> LoopbackFabric::create(const FabricOptions& options) {
    return std::shared_ptr<LoopbackFabric>(new LoopbackFabric(options));
}

Result<std::unique_ptr<LoopbackTransport>> LoopbackFabric::make_transport(Waiter& waiter) {
    const std::lock_guard lock(mutex_);
    PCCL_ASSIGN_OR_RETURN(auto process, Process::create(static_cast<int>(processes_.size()), waiter,
                                                        options_.faults));
    processes_.push_back(process);
    return std::unique_ptr<LoopbackTransport>(
        new LoopbackTransport(shared_from_this(), std::move(process)));
}

void LoopbackFabric::kill(int process) {
    if (const auto found = find(process)) found->die();
}

std::string LoopbackFabric::prefix() const {
    return concat("v1;", ::getpid(), ";", reinterpret_cast<std::uintptr_t>(this), ";");
}

std::shared_ptr<Process> LoopbackFabric::find(int process) {
    const std::lock_guard lock(mutex_);
    const bool exists = process >= 0 && static_cast<std::size_t>(process) < processes_.size();
    return exists ? processes_[static_cast<std::size_t>(process)] : nullptr;
}

std::shared_ptr<Pipe> LoopbackFabric::make_pipe(const LinkRequest& request) {
    const std::lock_guard lock(mutex_);
    return std::make_shared<Pipe>(
        PipeArgs{.request = request,
                 .capacity = options_.capacity,
                 .faults = options_.faults,
                 .clock = options_.clock,
                 .ordinal = links_[{request.source, request.destination, request.channel}]++});
}

std::unique_ptr<RmaTransport> LoopbackTransport::one_sided() const {
    return std::make_unique<LoopbackRma>(process_);
}

LoopbackTransport::~LoopbackTransport() { process_->die(); }

std::string LoopbackTransport::address() const {
    return concat(fabric_->prefix(), process_->index());
}

Result<std::shared_ptr<Process>> LoopbackTransport::peer_at(const std::string& address) const {
    const std::string prefix = fabric_->prefix();
    int index = -1;
    if (address.starts_with(prefix))
        std::from_chars(address.data() + prefix.size(), address.data() + address.size(), index);
    if (auto process = fabric_->find(index)) return process;
    return Status::unavailable("the peer is not in this loopback fabric");
}

Status LoopbackTransport::reaches(const std::string& address) const {
    return peer_at(address).status();
}

Result<std::unique_ptr<Dial>> LoopbackTransport::dial(const std::string& address,
                                                      const LinkRequest& request,
                                                      const Secret& secret) {
    PCCL_TRY(process_->live());
    PCCL_ASSIGN_OR_RETURN(const auto peer, peer_at(address));
    const auto call = std::make_shared<Call>();
    call->request = request;
    call->secret = secret;
    call->pipe = fabric_->make_pipe(request);
    call->caller = process_;
    auto link = std::make_unique<LoopbackSendLink>(call->pipe, process_);
    peer->ring(call);
    if (Acceptor* acceptor = peer->inline_acceptor) answer_all(peer, *acceptor);
    return std::unique_ptr<Dial>(std::make_unique<LoopbackDial>(call, std::move(link), address));
}

void LoopbackTransport::accept(Acceptor& acceptor) { answer_all(process_, acceptor); }

}  // namespace pccl::transport::loopback
