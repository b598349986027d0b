// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/memory_file.h"

namespace pccl::transport {
namespace {

constexpr int kMappingSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr std::size_t kPageSize = 4096;
constexpr std::size_t kCopiedAtOnce = 4 * kMiB;

Result<struct stat> examine(int fd) {
    struct stat facts {};
    if (::fstat(fd, &facts) != 0) return Status::from_errno(errno, "cannot examine shared memory");
    return facts;
}

Status require_same(int fd, const ProcessFile& meant) {
    PCCL_ASSIGN_OR_RETURN(const struct stat facts, examine(fd));
    const bool same = facts.st_dev == meant.device && facts.st_ino == meant.inode &&
                      (::fcntl(fd, F_GET_SEALS) & kMappingSeals) == kMappingSeals;
    if (same) return Status::ok();
    return Status::unsupported(concat("memory of process ", meant.pid,
                                      " is not visible from here; it has released it, or lives in ",
                                      "another pid namespace"));
}

/// Checks that the file contains the range. The size is sealed, so the check stays valid.
Status require_within(int fd, const FileRange& range) {
    PCCL_ASSIGN_OR_RETURN(const struct stat facts, examine(fd));
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    if (range.offset <= size && range.bytes <= size - range.offset) return Status::ok();
    return Status::invalid_argument(
        concat(range.bytes, " bytes at ", range.offset, " of shared memory that has ", size));
}

/// Checks that the memory shares no page with other memory. The file may not fill its last page.
Status require_own_pages(std::span<const std::byte> memory, int file, std::uint64_t offset) {
    PCCL_ASSIGN_OR_RETURN(const struct stat facts, examine(file));
    const bool begins =
        reinterpret_cast<std::uintptr_t>(memory.data()) % kPageSize == 0 && offset % kPageSize == 0;
    const bool ends = memory.size() % kPageSize == 0 ||
                      offset + memory.size() == static_cast<std::uint64_t>(facts.st_size);
    if (begins && ends) return Status::ok();
    return Status::unsupported("a part of shared memory that shares its pages with another");
}

/// Replaces the mapping at `memory`, atomically: earlier writes are in the file, and later writes
/// belong to this mapping alone.
Status map_privately(std::span<std::byte> memory, int file, std::uint64_t offset) {
    // Maps at another place first: if that is refused, nothing has changed.
    void* const view = ::mmap(nullptr, memory.size(), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_NORESERVE, file, static_cast<off_t>(offset));
    if (view == MAP_FAILED)
        return Status::from_errno(errno, concat("cannot map ", memory.size(), " bytes privately"));
    if (::mremap(view, memory.size(), memory.size(), MREMAP_MAYMOVE | MREMAP_FIXED,
                 memory.data()) != MAP_FAILED)
        return Status::ok();
    const int error = errno;
    ::munmap(view, memory.size());
    return Status::from_errno(error, concat("cannot move a mapping of ", memory.size(), " bytes"));
}

/// Copies the pages of a private mapping: a page becomes private with the first write to it. Its
/// content stays.
void copy_pages(std::span<std::byte> memory) {
    for (std::size_t at = 0; at < memory.size(); at += kPageSize) {
        const std::atomic_ref byte(reinterpret_cast<unsigned char&>(memory[at]));
        unsigned char value = byte.load(std::memory_order_relaxed);
        byte.compare_exchange_strong(value, value);  // a write that no compiler omits
    }
}

}  // namespace

Result<Mapping> Mapping::map(UniqueFd file, const FileRange& range) {
    Mapping mapping;
    const int flags = file.is_open() ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void* const memory = ::mmap(nullptr, range.bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE,
                                file.get(), static_cast<off_t>(range.offset));
    if (memory == MAP_FAILED)
        return Status::from_errno(errno, concat("cannot map ", range.bytes, " bytes"));
    mapping.memory_ = {static_cast<std::byte*>(memory), range.bytes};
    mapping.file_ = std::move(file);
    return mapping;
}

Result<Mapping> Mapping::anonymous(std::size_t bytes) { return map(UniqueFd(), {.bytes = bytes}); }

Result<Mapping> Mapping::shareable(const std::string& name, std::size_t bytes) {
    auto file = sys::make_memory_file("pccl-" + name, bytes);
    // A limit of this process means a shortage of room.
    if (file.status().code() == StatusCode::kUnavailable)
        return Status::resource_exhausted(std::string(file.status().message()));
    PCCL_TRY(file.status());
    return map(std::move(*file), {.bytes = bytes});
}

Result<Mapping> Mapping::ring(std::size_t bytes) {
    PCCL_ASSIGN_OR_RETURN(const Mapping file, shareable("ring", bytes));
    PCCL_ASSIGN_OR_RETURN(std::byte* const memory, map_twice(file.file(), {.bytes = bytes}));
    Mapping ring;
    ring.memory_ = {memory, 2 * bytes};
    return ring;
}

Result<Mapping> Mapping::of_process(const ProcessFile& file, const FileRange& range) {
    const std::string path = concat("/proc/", file.pid, "/fd/", file.file);
    // The number may refer to another file by now: opening that must not block.
    UniqueFd opened(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!opened.is_open())
        return Status::unsupported(
            Status::from_errno(errno,
                               concat("cannot open the memory of process ", file.pid, " at ", path))
                .message());
    PCCL_TRY(require_same(opened.get(), file));
    PCCL_TRY(require_within(opened.get(), range));
    PCCL_ASSIGN_OR_RETURN(Mapping view, map(std::move(opened), range));
    view.file_.reset();
    return view;
}

Mapping::~Mapping() {
    if (memory_.data() != nullptr) ::munmap(memory_.data(), memory_.size());
}

Status Mapping::bar() && {
    const std::span<std::byte> barred = std::exchange(memory_, {});
    if (::mprotect(barred.data(), barred.size(), PROT_NONE) == 0) return Status::ok();
    return Status::from_errno(errno, "cannot take back the right to write to a page");
}

Status make_private(std::span<std::byte> memory, int file, std::uint64_t offset,
                    const std::function<bool()>& is_needed) {
    PCCL_TRY(require_own_pages(memory, file, offset));
    PCCL_TRY(map_privately(memory, file, offset));
    for (std::size_t done = 0; done < memory.size() && is_needed(); done += kCopiedAtOnce) {
        const auto part = memory.subspan(done, std::min(kCopiedAtOnce, memory.size() - done));
        copy_pages(part);
        // Frees the old pages; a process that has mapped them gets new ones.
        const std::size_t pages = (part.size() + kPageSize - 1) / kPageSize * kPageSize;
        static_cast<void>(::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                      static_cast<off_t>(offset + done),
                                      static_cast<off_t>(pages)));
    }
    return Status::ok();
}

Result<std::byte*> map_twice(int file, const FileRange& range) {
    void* const area =
        ::mmap(nullptr, 2 * range.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        return Status::from_errno(errno, "cannot reserve address space for a ring");
    auto* const first = static_cast<std::byte*>(area);
    for (std::byte* const half : {first, first + range.bytes}) {
        void* const mapped = ::mmap(half, range.bytes, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(range.offset));
        if (mapped != MAP_FAILED) continue;
        const Status failure = Status::from_errno(errno, "cannot map a ring");
        ::munmap(area, 2 * range.bytes);
        return failure;
    }
    return first;
}

Result<ProcessFile> describe_file(int file) {
    PCCL_ASSIGN_OR_RETURN(const struct stat facts, examine(file));
    return ProcessFile{
        .pid = ::getpid(), .file = file, .device = facts.st_dev, .inode = facts.st_ino};
}

std::uint64_t bytes_taken(int file) {
    constexpr std::uint64_t kBlock = 512;
    const auto facts = examine(file);
    return facts.is_ok() ? static_cast<std::uint64_t>(facts->st_blocks) * kBlock : 0;
}

}  // namespace pccl::transport
