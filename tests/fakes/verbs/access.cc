// SPDX-License-Identifier: Apache-2.0

#include "tests/fakes/verbs/access.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/pinning.h"

namespace pccl::fake_verbs {

namespace {

constexpr uint64_t kWord = sizeof(uint64_t);
constexpr uint64_t kWordsInOrder = 64;  // bytes at the end of a copy that are stored word by word
constexpr uint64_t kBounce = uint64_t{1} << 20;  // bytes at a time between two other processes

// Copies within this process. CPUs poll memory that is written by RDMA, and change what is read by
// it: the last bytes are stored in words, in order, each with release semantics.
void copy_here(char* to, const char* from, uint64_t length) {
    uint64_t done = length > kWordsInOrder ? length - kWordsInOrder : 0;
    std::memmove(to, from, done);
    while (done < length) {
        const bool whole = length - done >= kWord && (reinterpret_cast<uintptr_t>(to + done) |
                                                      reinterpret_cast<uintptr_t>(from + done)) %
                                                             kWord ==
                                                         0;
        if (whole) {
            const auto value =
                __atomic_load_n(reinterpret_cast<const uint64_t*>(from + done), __ATOMIC_ACQUIRE);
            __atomic_store_n(reinterpret_cast<uint64_t*>(to + done), value, __ATOMIC_RELEASE);
            done += kWord;
        } else {
            __atomic_store_n(to + done, __atomic_load_n(from + done, __ATOMIC_ACQUIRE),
                             __ATOMIC_RELEASE);
            ++done;
        }
    }
}

int copy_piece(Index from, uint64_t source, Index to, uint64_t target, uint64_t length,
               std::vector<char>& bounce) {
    const Index self = this_process_index();
    auto* here = reinterpret_cast<char*>(target);
    const auto* there = reinterpret_cast<const char*>(source);
    // A guarded process copies by the kernel: memory that was unmapped is then an error of the
    // request.
    if (from == self && to == self && !this_process().guarded) {
        copy_here(here, there, length);
        return 0;
    }
    if (to == self) return read_memory(from, source, here, length);
    if (from == self) return write_memory(to, target, there, length);
    bounce.resize(std::min(length, kBounce));
    for (uint64_t done = 0; done < length;) {
        const uint64_t part = std::min(length - done, kBounce);
        int error = read_memory(from, source + done, bounce.data(), part);
        if (error == 0) error = write_memory(to, target + done, bounce.data(), part);
        if (error != 0) return error;
        done += part;
    }
    return 0;
}

}  // namespace

const SharedMr* check_key(const SharedQp& qp, uint32_t key, uint64_t address, uint64_t length,
                          uint32_t rights, bool remote) {
    const char* kind = remote ? "rkey" : "lkey";
    const Index index = (key & 0x7fffffff) >> 8;
    const SharedMr& mr = fabric().mrs[index % kMaxMrs];
    if (key == 0 || index >= kMaxMrs || !mr.used || mr.key != (key & 0x7fffffff)) {
        complain("%s 0x%x of QP 0x%x is not that of a registered region", kind, key, qp.qpn);
    } else if (((key & kRemoteKey) != 0) != remote) {
        complain("%s 0x%x of QP 0x%x is the other key of that region", kind, key, qp.qpn);
    } else if (mr.process != qp.process || mr.pd != qp.pd) {
        complain("%s 0x%x belongs to another protection domain than QP 0x%x", kind, key, qp.qpn);
    } else if (address < mr.iova || length > mr.length || address - mr.iova > mr.length - length) {
        complain("%s 0x%x: [0x%lx, +%lu) is outside [0x%lx, +%lu)", kind, key, address, length,
                 mr.iova, mr.length);
    } else if ((mr.access & rights) != rights) {
        complain("%s 0x%x was registered with access 0x%x, which 0x%x needs more", kind, key,
                 mr.access, rights);
    } else if (is_mapped_anew(mr)) {
        complain("%s 0x%x: the memory was unmapped, or mapped anew, after its registration", kind,
                 key);
    } else {
        return &mr;
    }
    return nullptr;
}

bool check_list(const SharedQp& qp, std::span<const ibv_sge> list, uint32_t rights,
                std::vector<Piece>& pieces) {
    for (const ibv_sge& element : list) {
        if (element.length == 0) continue;
        const SharedMr* mr =
            check_key(qp, element.lkey, element.addr, element.length, rights, false);
        if (mr == nullptr) return false;
        pieces.push_back({mr->address + (element.addr - mr->iova), element.length});
    }
    return true;
}

int copy(Index from, std::span<const Piece> source, Index to, std::span<const Piece> target,
         uint64_t length) {
    std::vector<char> bounce;
    size_t s = 0;
    size_t t = 0;
    uint64_t in_source = 0;
    uint64_t in_target = 0;
    while (length > 0) {
        if (s == source.size() || t == target.size()) return EFAULT;
        const uint64_t part =
            std::min({source[s].length - in_source, target[t].length - in_target, length});
        const int error = copy_piece(from, source[s].address + in_source, to,
                                     target[t].address + in_target, part, bounce);
        if (error != 0) return error;
        length -= part;
        in_source += part;
        in_target += part;
        if (in_source == source[s].length) ++s, in_source = 0;
        if (in_target == target[t].length) ++t, in_target = 0;
    }
    return 0;
}

int read_memory(Index from, uint64_t address, void* into, uint64_t length) {
    const pid_t pid = fabric().processes[from].pid;
    for (uint64_t done = 0; done < length;) {
        const iovec here{static_cast<char*>(into) + done, length - done};
        const iovec there{reinterpret_cast<void*>(address + done), length - done};
        const ssize_t part = ::process_vm_readv(pid, &here, 1, &there, 1, 0);
        if (part <= 0) return part < 0 ? errno : EFAULT;
        done += static_cast<uint64_t>(part);
    }
    return 0;
}

int write_memory(Index to, uint64_t address, const void* bytes, uint64_t length) {
    const pid_t pid = fabric().processes[to].pid;
    auto* from = const_cast<char*>(static_cast<const char*>(bytes));
    for (uint64_t done = 0; done < length;) {
        // The kernel copies each element by an instruction of its own: the last word is stored
        // last.
        const uint64_t left = length - done;
        const uint64_t first = left > kWord ? left - kWord : left;
        const iovec here[2] = {{from + done, first}, {from + done + first, left - first}};
        const iovec there{reinterpret_cast<void*>(address + done), left};
        const ssize_t part = ::process_vm_writev(pid, here, first < left ? 2 : 1, &there, 1, 0);
        if (part <= 0) return part < 0 ? errno : EFAULT;
        done += static_cast<uint64_t>(part);
    }
    return 0;
}

int atomic_memory(Index process, uint64_t address, const SendWqe& request, uint64_t& before) {
    const bool swap = request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    if (process == this_process_index()) {
        auto* word = reinterpret_cast<uint64_t*>(address);
        if (!swap) {
            before = __atomic_fetch_add(word, request.compare_add, __ATOMIC_ACQ_REL);
            return 0;
        }
        before = request.compare_add;
        __atomic_compare_exchange_n(word, &before, request.swap, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE);
        return 0;
    }
    // Atomic to other requests alone, as the lock orders them: IBV_ATOMIC_HCA promises no more.
    const int error = read_memory(process, address, &before, sizeof before);
    if (error != 0) return error;
    if (swap && before != request.compare_add) return 0;
    const uint64_t after = swap ? request.swap : before + request.compare_add;
    return write_memory(process, address, &after, sizeof after);
}

}  // namespace pccl::fake_verbs
