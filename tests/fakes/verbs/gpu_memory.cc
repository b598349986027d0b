// SPDX-License-Identifier: Apache-2.0

#include "tests/fakes/verbs/gpu_memory.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/fakes/verbs/control.h"
#include "tests/fakes/verbs/fabric.h"

namespace pccl::fake_verbs {

namespace {

std::atomic<uint64_t> gpu_address{0};
std::atomic<uint64_t> gpu_length{0};
std::atomic<bool> has_peermem{false};

/// A line of /proc/self/maps.
struct MappedFile {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t offset = 0;
    ino_t inode = 0;
};

/// What is mapped at an address.
MappedFile mapped_at(uint64_t address) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        MappedFile found;
        char dash = 0;
        std::string rights;
        std::string device;
        std::istringstream in(line);
        in >> std::hex >> found.begin >> dash >> found.end >> rights >> found.offset >> device >>
            std::dec >> found.inode;
        if (address >= found.begin && address < found.end) return found;
    }
    return {};
}

bool is_memfd(int fd) {
    char name[64] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    return ::readlink(link.c_str(), name, sizeof name - 1) > 0 &&
           std::string(name).starts_with("/memfd:");
}

}  // namespace

bool is_of_gpu(uint64_t address, uint64_t length) {
    const uint64_t begin = gpu_address;
    return length > 0 && address < begin + gpu_length && begin < address + length;
}

bool needs_peermem(uint64_t address, uint64_t length) {
    return !has_peermem && is_of_gpu(address, length);
}

int check_dmabuf(int fd, uint64_t offset, uint64_t length, uint64_t iova) {
    struct stat file {};
    if (::fstat(fd, &file) != 0) return EBADF;
    if (!is_memfd(fd)) {
        complain("descriptor %d is no dma-buf", fd);
        return EINVAL;
    }
    const auto size = static_cast<uint64_t>(file.st_size);
    if (offset > size || length > size - offset) {
        complain("[%lu, +%lu) is outside a dma-buf of %lu bytes", offset, length, size);
        return EINVAL;
    }
    const MappedFile there = mapped_at(iova);
    const bool is_same = there.inode == file.st_ino &&
                         iova - there.begin + there.offset == offset && iova + length <= there.end;
    if (is_same) return 0;
    complain("the iova 0x%lx is not that of offset %lu of the dma-buf", iova, offset);
    return EINVAL;
}

}  // namespace pccl::fake_verbs

int fake_verbs_set_gpu_memory(const void* address, uint64_t length) {
    pccl::fake_verbs::gpu_address = reinterpret_cast<uint64_t>(address);
    pccl::fake_verbs::gpu_length = length;
    return 0;
}

int fake_verbs_set_peermem(int loaded) {
    pccl::fake_verbs::has_peermem = loaded != 0;
    return 0;
}
