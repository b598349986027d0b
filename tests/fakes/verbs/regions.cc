// SPDX-License-Identifier: Apache-2.0

// Registration of memory.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/gpu_memory.h"
#include "tests/fakes/verbs/objects.h"
#include "tests/fakes/verbs/pinning.h"
#include "tests/fakes/verbs/rules.h"

namespace pccl::fake_verbs {

namespace {

constexpr unsigned kNeedsLocalWrite =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
constexpr unsigned kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                  IBV_ACCESS_MW_BIND | IBV_ACCESS_HUGETLB | IBV_ACCESS_ZERO_BASED |
                                  IBV_ACCESS_OPTIONAL_RANGE;

// Whether all pages of a range exist, and the outermost ones can be accessed: to try all would give
// memory to each.
bool is_mapped(uint64_t address, uint64_t length, bool written) {
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    const uint64_t first = address / page * page;
    const uint64_t last = (address + length - 1) / page * page;
    if (::msync(reinterpret_cast<void*>(first), last - first + page, MS_ASYNC) != 0) return false;
    const int how = written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    return ::madvise(reinterpret_cast<void*>(first), page, how) == 0 &&
           ::madvise(reinterpret_cast<void*>(last), page, how) == 0;
}

// The errno of a registration that a rule or a limit refuses.
int refusal(SharedProcess& self, uint64_t length) {
    if (self.refuse_errno != 0) {
        if (self.refuse_after == 0) return self.refuse_errno;
        --self.refuse_after;
    }
    if (self.counters.mrs >= self.mr_limit) return ENOMEM;
    return self.counters.pinned + length > self.memlock ? ENOMEM : 0;
}

struct Registration {
    ibv_pd* pd;
    uint64_t address;
    uint64_t length;
    uint64_t iova;
    unsigned access;
    bool is_dmabuf;
};

int check_registration(const Registration& wanted) {
    if ((wanted.access & kNeedsLocalWrite) != 0 && (wanted.access & IBV_ACCESS_LOCAL_WRITE) == 0) {
        complain("a registration with access 0x%x needs IBV_ACCESS_LOCAL_WRITE", wanted.access);
        return EINVAL;
    }
    if ((wanted.access & ~kKnownAccess) != 0) return EOPNOTSUPP;
    if (wanted.length == 0 || wanted.address + wanted.length < wanted.address) return EINVAL;
    if (is_fatal(wanted.pd->context)) return EIO;
    if (wanted.is_dmabuf) return 0;
    if (needs_peermem(wanted.address, wanted.length)) return EFAULT;
    if (is_mapped(wanted.address, wanted.length, (wanted.access & IBV_ACCESS_LOCAL_WRITE) != 0))
        return 0;
    complain("a registration of [0x%lx, +%lu), which is not mapped", wanted.address, wanted.length);
    return EFAULT;
}

ibv_mr* add_region(const Registration& wanted) {
    const int wrong = check_registration(wanted);
    if (wrong != 0) return fail_with(wrong);
    Fabric& all = fabric();
    const Lock lock;
    SharedProcess& self = this_process();
    const int error = refusal(self, wanted.length);
    if (error != 0) return fail_with(error);
    const Index index = free_entry(all.mrs, all.mrs_end, kMaxMrs, 1);
    if (index == kNone) return fail_with(ENOMEM);
    SharedMr& shared = all.mrs[index];
    shared.generation = (shared.generation + 1) % 256;
    shared.key = index << 8 | shared.generation;
    shared.process = this_process_index();
    shared.context = of(wanted.pd->context).index;
    shared.pd = wanted.pd->handle;
    shared.access = wanted.access;
    shared.address = wanted.address;
    shared.length = wanted.length;
    shared.iova = wanted.iova;
    shared.used = true;
    count(self.counters.mrs);
    count(self.counters.registrations);
    count(self.counters.pinned, wanted.length);
    auto* mr = new Mr{};
    mr->index = index;
    pin(shared, mr->pinning);
    mr->base = {wanted.pd->context,     wanted.pd, reinterpret_cast<void*>(wanted.address),
                wanted.length,          index,     shared.key,
                shared.key | kRemoteKey};
    ++of(wanted.pd).users;
    return &mr->base;
}

ibv_mr* add_region(ibv_pd* pd, void* address, size_t length, uint64_t iova, unsigned access) {
    return add_region({pd, reinterpret_cast<uint64_t>(address), length, iova, access, false});
}

}  // namespace

}  // namespace pccl::fake_verbs

using namespace pccl::fake_verbs;  // NOLINT(google-build-using-namespace)

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
    return add_region(pd, address, length, reinterpret_cast<uint64_t>(address),
                      static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) {
    return add_region(pd, address, length, iova, static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t iova,
                         unsigned int access) {
    return add_region(pd, address, length, iova, access);
}

// The pages of a dma-buf are those at `iova` in the fake.
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                          int access) {
    if (this_process().no_dmabuf) return fail_with(EOPNOTSUPP);
    const int wrong = check_dmabuf(fd, offset, length, iova);
    if (wrong != 0) return fail_with(wrong);
    return add_region({pd, iova, length, iova, static_cast<unsigned>(access), true});
}

int ibv_dereg_mr(ibv_mr* mr) {
    SharedMr& shared = fabric().mrs[of(mr).index];
    if (is_own_process(shared.process)) {
        const Lock lock;
        shared.used = false;
        discount(this_process().counters.mrs);
        discount(this_process().counters.pinned, shared.length);
    }
    unpin(of(mr).pinning);
    --of(mr->pd).users;
    delete &of(mr);
    return 0;
}

int ibv_rereg_mr(ibv_mr* /*mr*/, int /*flags*/, ibv_pd* /*pd*/, void* /*address*/,
                 size_t /*length*/, int /*access*/) {
    errno = EOPNOTSUPP;
    return IBV_REREG_MR_ERR_INPUT;
}
