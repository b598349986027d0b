// SPDX-License-Identifier: Apache-2.0

#include "tests/fakes/verbs/pinning.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tests/fakes/verbs/fabric.h"

namespace pccl::fake_verbs {

namespace {

uint64_t page_size() {
    static const auto size = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    return size;
}

// The addresses of the pages that are looked at, evenly over the region.
uint32_t sample(const SharedMr& region, uint64_t (&pages)[kPinnedPages]) {
    const uint64_t first = region.address / page_size();
    const uint64_t count_of_pages = (region.address + region.length - 1) / page_size() - first + 1;
    const auto taken = static_cast<uint32_t>(std::min<uint64_t>(count_of_pages, kPinnedPages));
    for (uint32_t i = 0; i < taken; ++i) {
        const uint64_t at_page = taken > 1 ? i * (count_of_pages - 1) / (taken - 1) : 0;
        pages[i] = (first + at_page) * page_size();
    }
    return taken;
}

// The number of the page at an address of a process; 0 if there is none, or it is kept secret.
uint64_t page_number(int file, uint64_t address) {
    uint64_t entry = 0;
    const auto offset = static_cast<off_t>(address / page_size() * sizeof entry);
    if (::pread(file, &entry, sizeof entry, offset) != sizeof entry) return 0;
    const bool present = (entry >> 63) != 0;
    return present ? entry & ((uint64_t{1} << 55) - 1) : 0;
}

int open_pagemap(pid_t pid) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/pagemap", static_cast<int>(pid));
    return ::open(path, O_RDONLY | O_CLOEXEC);
}

}  // namespace

// A pipe takes references to pages (vmsplice), and so keeps the kernel from giving them to others.
void pin(SharedMr& region, int (&descriptors)[2]) {
    region.pinned = 0;
    descriptors[0] = descriptors[1] = -1;
    if (!this_process().guarded || ::pipe2(descriptors, O_CLOEXEC | O_NONBLOCK) != 0) return;
    uint64_t pages[kPinnedPages];
    const uint32_t taken = sample(region, pages);
    const int file = open_pagemap(::getpid());
    for (uint32_t i = 0; i < taken && file >= 0; ++i) {
        // A page that was never written would be replaced at the first write.
        ::madvise(reinterpret_cast<void*>(pages[i]), page_size(), MADV_POPULATE_WRITE);
        iovec page{reinterpret_cast<void*>(pages[i]), page_size()};
        if (::vmsplice(descriptors[1], &page, 1, 0) < 0) break;
        region.pages[i] = page_number(file, pages[i]);
        if (region.pages[i] == 0) break;
        region.pinned = i + 1;
    }
    if (file >= 0) ::close(file);
    if (region.pinned < taken)
        complain("FAKE_VERBS_GUARD watches %u of %u pages", region.pinned, taken);
}

void unpin(const int (&descriptors)[2]) {
    for (const int descriptor : descriptors) {
        if (descriptor >= 0) ::close(descriptor);
    }
}

bool is_mapped_anew(const SharedMr& region) {
    if (region.pinned == 0) return false;
    const int file = open_pagemap(fabric().processes[region.process].pid);
    if (file < 0) return false;
    uint64_t pages[kPinnedPages];
    sample(region, pages);
    bool same = true;
    for (uint32_t i = 0; i < region.pinned; ++i) {
        same = same && page_number(file, pages[i]) == region.pages[i];
    }
    ::close(file);
    return !same;
}

}  // namespace pccl::fake_verbs
