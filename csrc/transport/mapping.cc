#include "csrc/transport/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "csrc/base/text.h"

namespace pccl::transport {
namespace {

constexpr int kMappingSeals = F_SEAL_SHRINK | F_SEAL_GROW;

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

/// The size is sealed: it stays as it is.
Status require_within(int fd, const FileRange& range) {
    PCCL_ASSIGN_OR_RETURN(const struct stat facts, examine(fd));
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    if (range.offset <= size && range.bytes <= size - range.offset) return Status::ok();
    return Status::invalid_argument(
        concat(range.bytes, " bytes at ", range.offset, " of shared memory that has ", size));
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
    constexpr std::size_t kLongestName = 200;
    UniqueFd file(::memfd_create(("pccl-" + name.substr(0, kLongestName)).c_str(),
                                 MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file.is_open()) return Status::from_errno(errno, "cannot create a memfd");
    if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
        return Status::from_errno(errno, concat("cannot size a memfd to ", bytes, " bytes"));
    if (::fcntl(file.get(), F_ADD_SEALS, kMappingSeals) != 0)
        return Status::from_errno(errno, "cannot seal a memfd");
    return map(std::move(file), {.bytes = bytes});
}

Result<Mapping> Mapping::of_process(const ProcessFile& file, const FileRange& range) {
    const std::string path = concat("/proc/", file.pid, "/fd/", file.file);
    // Whatever the number stands for now: opening it must not wait.
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

Result<ProcessFile> describe_file(int file) {
    PCCL_ASSIGN_OR_RETURN(const struct stat facts, examine(file));
    return ProcessFile{
        .pid = ::getpid(), .file = file, .device = facts.st_dev, .inode = facts.st_ino};
}

}  // namespace pccl::transport
