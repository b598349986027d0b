// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/shm/rma.h"

#include <utility>

#include "csrc/base/fork.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/rma/copy_link.h"
#include "csrc/transport/shm/gpu_copies.h"
#include "csrc/transport/shm/link.h"
#include "csrc/transport/shm/peer_memory.h"

namespace pccl::transport::shm {
namespace {

// Duration of a write by a running process on a busy machine.
constexpr Duration kBriefTimeout = std::chrono::milliseconds(100);

/// Registration whose line is open while it lives.
class ShmRegistration final : public Registration {
   public:
    ShmRegistration(const Memory& memory, std::shared_ptr<Ledger> ledger, std::uint32_t line)
        : memory_(memory), ledger_(std::move(ledger)), line_(line) {}
    ~ShmRegistration() override {
        if (made_in_.is_child()) return;
        ledger_->end(line_);
        if (!ledger_->await_no_writers(line_, kBriefTimeout)) keep_writers_out();
        ledger_->give_back(line_);
    }
    ShmRegistration(const ShmRegistration&) = delete;
    ShmRegistration& operator=(const ShmRegistration&) = delete;

    [[nodiscard]] const Memory& memory() const override { return memory_; }
    [[nodiscard]] const abi::MemoryDescriptor& descriptor() const override { return descriptor_; }

    Status describe(const MemoryIdentity& identity, MemoryKey key) {
        descriptor_ = descriptor_of(memory_, identity);
        key.line = line_;
        key.line_address = ledger_->address_of(line_);
        return add_key(descriptor_, key);
    }

   private:
    /// Keeps out a writer that may be stopped, and continue later (ledger.h).
    void keep_writers_out() const {
        const Status kept = memory_.file >= 0 ? leave_pages() : shut_gate();
        if (kept.is_ok() || ledger_->await_no_writers(line_, Ledger::kWriterTimeout)) return;
        log(LogLevel::kWarning, "a process that was stopped or killed while it wrote to a ",
            "registration may write there after its end: ", kept.message());
    }
    [[nodiscard]] Status leave_pages() const {
        return make_private({memory_.data, memory_.bytes}, memory_.file, memory_.file_offset,
                            [this] { return !ledger_->await_no_writers(line_, {}); });
    }
    [[nodiscard]] Status shut_gate() const {
        if (memory_.kind == abi::MemoryKind::kGpu)
            return Status::unavailable("it is memory of a GPU, which cannot be replaced");
        PCCL_TRY(ledger_->shut_gate());
        // Waits for a call that the kernel is executing.
        static_cast<void>(ledger_->await_no_writers(line_, Ledger::kWriterTimeout));
        return Status::ok();
    }

    const ForkMark made_in_;
    const Memory memory_;
    const std::shared_ptr<Ledger> ledger_;
    const std::uint32_t line_;
    abi::MemoryDescriptor descriptor_{};
};

/// Process of this host; `wire` is that of the link's stream, which the link keeps.
class ShmPeer final : public RmaPeer {
   public:
    ShmPeer(PeerWire& wire, pid_t process, std::shared_ptr<GpuMemories> gpus)
        : wire_(wire),
          process_(process),
          gpus_(std::move(gpus)),
          gpu_copies_(gpus_, [this](const PeerMemory& memory, const Status& copied) {
              return looked(memory, copied);
          }) {}

    Result<std::shared_ptr<RmaPeerMemory>> open(const abi::MemoryDescriptor& memory) override {
        PCCL_ASSIGN_OR_RETURN(auto opened, PeerMemory::open(memory, process_, gpus_));
        return std::shared_ptr<RmaPeerMemory>(std::move(opened));
    }
    RmaCopied copy(RmaPeerMemory& memory, const RmaCopy& wanted) override {
        const auto& theirs = static_cast<const PeerMemory&>(memory);
        const bool sees_owner = !theirs.is_mapped() && wire_.is_process_alive();
        Status copied = theirs.copy(wanted, sees_owner);
        if (copied.is_ok() && sees_owner && !wire_.is_process_alive()) copied = theirs.find_owner();
        return looked(theirs, copied);
    }
    [[nodiscard]] std::size_t most_in_flight(const RmaPeerMemory& memory,
                                             const Memory& here) const override {
        return GpuCopies::most_in_flight(here.kind == abi::MemoryKind::kHost ||
                                         !memory.is_of_gpu());
    }
    std::unique_ptr<RmaInFlightCopy> begin(const std::shared_ptr<RmaPeerMemory>& memory, RmaOp op,
                                           const RmaPiecesHere& here) override {
        return gpu_copies_.begin(std::static_pointer_cast<PeerMemory>(memory), op, here);
    }

   private:
    RmaCopied looked(const PeerMemory& memory, const Status& copied) {
        return {.link = look_at_owner(memory, copied), .pieces = copied};
    }
    Status look_at_owner(const PeerMemory& memory, const Status& copied) {
        if (copied.is_ok() && wire_.is_process_alive()) return Status::ok();
        PCCL_TRY(wire_.look());
        if (copied.is_ok() || !memory.is_open() || memory.find_owner().is_ok()) return Status::ok();
        // A process that ends gives its memory up before its descriptors.
        return Status::peer_lost(wire_.peer(),
                                 concat("the process of ", peer_name(wire_.peer()), " has ended"));
    }

    PeerWire& wire_;
    const pid_t process_;
    const std::shared_ptr<GpuMemories> gpus_;
    GpuCopies gpu_copies_;
};

}  // namespace

Result<std::unique_ptr<ShmRma>> ShmRma::create() {
    PCCL_ASSIGN_OR_RETURN(auto ledger, Ledger::create());
    PCCL_ASSIGN_OR_RETURN(const std::uint64_t host, host_hash());
    return std::unique_ptr<ShmRma>(new ShmRma(std::move(ledger), host));
}

Result<MemoryKey> ShmRma::key_for(const Memory& memory) const {
    MemoryKey key{.host = host_,
                  .address = reinterpret_cast<std::uint64_t>(memory.data),
                  .ledger = ledger_->file()};
    if (memory.kind == abi::MemoryKind::kGpu) {
        PCCL_ASSIGN_OR_RETURN(key.gpu, key_of_gpu(memory));
        return key;
    }
    if (memory.file < 0) return key;
    PCCL_ASSIGN_OR_RETURN(const ProcessFile file, describe_file(memory.file));
    key.file = file.file;
    key.inode = file.inode;
    key.offset = memory.file_offset;
    return key;
}

Result<std::unique_ptr<Registration>> ShmRma::add(const Memory& memory,
                                                  const MemoryIdentity& identity) {
    PCCL_TRY(check_memory(memory, identity));
    PCCL_ASSIGN_OR_RETURN(const MemoryKey key, key_for(memory));
    PCCL_ASSIGN_OR_RETURN(const std::uint32_t line, ledger_->open(identity.nonce));
    auto registration = std::make_unique<ShmRegistration>(memory, ledger_, line);
    PCCL_TRY(registration->describe(identity, key));
    return std::unique_ptr<Registration>(std::move(registration));
}

Status ShmRma::reaches(const abi::MemoryDescriptor& memory) const {
    PCCL_ASSIGN_OR_RETURN(const MemoryKey key, key_on_this_host(memory));
    return PeerMemory::open(memory, static_cast<pid_t>(key.ledger.pid), gpus_).status();
}

Result<std::unique_ptr<RmaLink>> ShmRma::connect(RmaStreams streams) {
    if (streams.out->kind() != TransportKind::kShm || streams.in->kind() != TransportKind::kShm)
        return Status::invalid_argument("a link of shared memory takes streams of shared memory");
    PeerWire& wire = static_cast<ShmSendLink&>(*streams.out).wire();
    PCCL_ASSIGN_OR_RETURN(const pid_t process, wire.process());
    return std::unique_ptr<RmaLink>(std::make_unique<RmaCopyLink>(
        std::move(streams), std::make_unique<ShmPeer>(wire, process, gpus_)));
}

}  // namespace pccl::transport::shm
