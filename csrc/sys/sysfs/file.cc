#include "csrc/sys/sysfs/file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "csrc/base/text.h"

namespace pccl::sys {
namespace {

Status write_all(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    if (!file.flush()) return Status::from_errno(errno, concat("cannot write ", path));
    return Status::ok();
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error))
        return Status::unavailable(concat("cannot read ", path, ": it is a folder"));
    std::ifstream file(path, std::ios::binary);
    if (!file) return Status::from_errno(errno, concat("cannot read ", path));
    std::string text(limit + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.size() > limit)
        return Status::resource_exhausted(
            concat(path, " is longer than ", limit, " bytes, the most that is read"));
    return text;
}

Status write_file(const std::string& path, const std::string& text) {
    // Several processes may write one file at a time.
    const std::string draft = concat(path, ".", ::getpid(), ".part");
    Status written = write_all(draft, text);
    if (written.is_ok() && std::rename(draft.c_str(), path.c_str()) != 0)
        written = Status::from_errno(errno, concat("cannot write ", path));
    if (!written.is_ok()) ::unlink(draft.c_str());
    return written;
}

}  // namespace pccl::sys
