#include "csrc/transport/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "csrc/base/text.h"
#include "csrc/sys/host.h"

namespace pccl::transport {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

/// FNV-1a (G. Fowler, L. C. Noll, P. Vo): identities are compared, not protected.
Result<std::uint64_t> host_hash() {
    PCCL_ASSIGN_OR_RETURN(const std::string identity, sys::host_identity());
    std::uint64_t hash = 0xCBF2'9CE4'8422'2325;
    for (const char c : identity) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01B3;
    return hash;
}

Result<struct stat> examine(int fd) {
    struct stat facts {};
    if (::fstat(fd, &facts) != 0) return Status::from_errno(errno, "cannot examine shared memory");
    return facts;
}

Status is_the_file(int fd, const abi::MemoryDescriptor& memory) {
    PCCL_ASSIGN_OR_RETURN(const struct stat facts, examine(fd));
    const bool same = facts.st_dev == memory.device && facts.st_ino == memory.inode &&
                      static_cast<std::uint64_t>(facts.st_size) >= memory.bytes &&
                      (::fcntl(fd, F_GET_SEALS) & kSeals) == kSeals;
    if (same) return Status::ok();
    return Status::unsupported(concat(
        "memory of rank ", memory.owner, " (pid ", memory.pid,
        ") is not visible from here; it has released it, or lives in ", "another pid namespace"));
}

}  // namespace

Result<Mapping> Mapping::map(UniqueFd file, std::size_t bytes) {
    Mapping mapping;
    const int flags = file.is_open() ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, file.get(), 0);
    if (memory == MAP_FAILED)
        return Status::from_errno(errno, concat("cannot map ", bytes, " bytes"));
    mapping.memory_ = {static_cast<std::byte*>(memory), bytes};
    mapping.file_ = std::move(file);
    return mapping;
}

Result<Mapping> Mapping::anonymous(std::size_t bytes) { return map(UniqueFd(), bytes); }

Result<Mapping> Mapping::shareable(const std::string& name, std::size_t bytes) {
    constexpr std::size_t kLongestName = 200;
    UniqueFd file(::memfd_create(("pccl-" + name.substr(0, kLongestName)).c_str(),
                                 MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file.is_open()) return Status::from_errno(errno, "cannot create a memfd");
    if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
        return Status::from_errno(errno, concat("cannot size a memfd to ", bytes, " bytes"));
    if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0)
        return Status::from_errno(errno, "cannot seal a memfd");
    return map(std::move(file), bytes);
}

Result<Mapping> Mapping::of_peer(const abi::MemoryDescriptor& memory) {
    PCCL_ASSIGN_OR_RETURN(const std::uint64_t here, host_hash());
    if (memory.file < 0 || memory.host != here)
        return Status::unsupported(
            concat("memory of rank ", memory.owner, " is on another host or cannot be mapped"));
    const std::string path = concat("/proc/", memory.pid, "/fd/", memory.file);
    UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file.is_open())
        return Status::unsupported(Status::from_errno(errno, concat("cannot open memory of rank ",
                                                                    memory.owner, " at ", path))
                                       .message());
    PCCL_TRY(is_the_file(file.get(), memory));
    return map(std::move(file), memory.bytes);
}

Mapping::~Mapping() {
    if (memory_.data() != nullptr) ::munmap(memory_.data(), memory_.size());
}

Result<abi::MemoryDescriptor> Mapping::describe() const {
    PCCL_ASSIGN_OR_RETURN(const struct stat facts, examine(file_.get()));
    abi::MemoryDescriptor memory{};
    PCCL_ASSIGN_OR_RETURN(memory.host, host_hash());
    memory.address = reinterpret_cast<std::uint64_t>(memory_.data());
    memory.bytes = memory_.size();
    memory.device = facts.st_dev;
    memory.inode = facts.st_ino;
    memory.pid = ::getpid();
    memory.file = file_.get();
    return memory;
}

}  // namespace pccl::transport
