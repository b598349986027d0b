#include "csrc/sys/sysfs/file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "csrc/base/text.h"

namespace pccl::sys {

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
    {
        std::ofstream file(draft, std::ios::binary);
        file << text;
        if (!file.flush()) return Status::from_errno(errno, concat("cannot write ", draft));
    }
    std::error_code error;
    std::filesystem::rename(draft, path, error);
    if (error) return Status::unavailable(concat("cannot write ", path, ": ", error.message()));
    return Status::ok();
}

}  // namespace pccl::sys
