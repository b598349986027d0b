// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/shm/ledger.h"

#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/cpu/relax.h"

namespace pccl::transport::shm {
namespace {

constexpr std::size_t kLedgerPage = 4096;
constexpr int kSpins = 1000;
constexpr Duration kBetweenWriterLooks = std::chrono::microseconds(50);

std::uint64_t address_of_gate(const Mapping& gate) {
    return reinterpret_cast<std::uint64_t>(gate.memory().data());
}

}  // namespace

Result<std::shared_ptr<Ledger>> Ledger::create() {
    PCCL_ASSIGN_OR_RETURN(Mapping mapping,
                          Mapping::shareable("ledger", kLines * sizeof(LedgerLine)));
    PCCL_ASSIGN_OR_RETURN(const ProcessFile file, describe_file(mapping.file()));
    PCCL_ASSIGN_OR_RETURN(Mapping gate, Mapping::anonymous(kLedgerPage));
    return std::shared_ptr<Ledger>(new Ledger(std::move(mapping), file, std::move(gate)));
}

LedgerLine& Ledger::at(std::uint32_t line) const {
    return reinterpret_cast<LedgerLine*>(mapping_.memory().data())[line];
}

std::uint64_t Ledger::address_of(std::uint32_t line) const {
    return reinterpret_cast<std::uint64_t>(&at(line).nonce);
}

Result<std::uint32_t> Ledger::open(std::uint64_t nonce) {
    const std::lock_guard lock(mutex_);
    if (!left_.empty()) free_left_lines();
    if (free_.empty() && used_ == kLines)
        return Status::resource_exhausted(
            concat("a process has ", kLines, " registrations at most: end some"));
    std::uint32_t line = used_;
    if (free_.empty()) {
        ++used_;
    } else {
        line = free_.back();
        free_.pop_back();
    }
    at(line).gate.store(address_of_gate(gate_), std::memory_order_relaxed);
    at(line).nonce.store(nonce, std::memory_order_release);
    return line;
}

void Ledger::free_left_lines() {
    std::erase_if(left_, [this](std::uint32_t line) {
        const bool is_free = at(line).writers.load(std::memory_order_seq_cst) == 0;
        if (is_free) free_.push_back(line);
        return is_free;
    });
}

void Ledger::end(std::uint32_t line) {
    // Precedes all later accesses of the owner's caller to the memory.
    at(line).nonce.store(0, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Ledger::give_back(std::uint32_t line) {
    const std::lock_guard lock(mutex_);
    left_.push_back(line);
    free_left_lines();
}

bool Ledger::await_no_writers(std::uint32_t line, Duration timeout) const {
    const Deadline deadline = Deadline::after(timeout);
    for (int spin = 0; at(line).writers.load(std::memory_order_seq_cst) != 0; ++spin) {
        if (spin < kSpins) {
            relax();
            continue;
        }
        if (deadline.passed()) return false;
        system_clock().sleep_for(kBetweenWriterLooks);
    }
    return true;
}

Status Ledger::shut_gate() {
    PCCL_ASSIGN_OR_RETURN(Mapping next, Mapping::anonymous(kLedgerPage));
    const std::lock_guard lock(mutex_);
    for (std::uint32_t line = 0; line < used_; ++line)
        if (at(line).nonce.load(std::memory_order_relaxed) != 0)
            at(line).gate.store(address_of_gate(next), std::memory_order_seq_cst);
    std::swap(gate_, next);
    return std::move(next).bar();
}

Result<PeerLine> PeerLine::map(const ProcessFile& ledger, std::uint32_t line) {
    const std::size_t offset = line * sizeof(LedgerLine);
    PCCL_ASSIGN_OR_RETURN(Mapping page,
                          Mapping::of_process(ledger, {.offset = offset / kLedgerPage * kLedgerPage,
                                                       .bytes = kLedgerPage}));
    auto* const at = reinterpret_cast<LedgerLine*>(page.memory().data() + offset % kLedgerPage);
    return PeerLine(std::move(page), at);
}

bool PeerLine::is_open(std::uint64_t nonce) const {
    // Loads of the copy come before this one.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return line_->nonce.load(std::memory_order_seq_cst) == nonce;
}

bool PeerLine::enter(std::uint64_t nonce) const {
    line_->writers.fetch_add(1, std::memory_order_seq_cst);
    if (line_->nonce.load(std::memory_order_seq_cst) == nonce) return true;
    line_->writers.fetch_sub(1, std::memory_order_seq_cst);
    return false;
}

std::uint64_t PeerLine::gate() const { return line_->gate.load(std::memory_order_seq_cst); }

bool PeerLine::leave(std::uint64_t nonce) const {
    const bool was_open = is_open(nonce);
    line_->writers.fetch_sub(1, std::memory_order_seq_cst);
    return was_open;
}

}  // namespace pccl::transport::shm
