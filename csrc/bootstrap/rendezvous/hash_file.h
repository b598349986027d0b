// SPDX-License-Identifier: Apache-2.0

// Hash table in a file, of which a process reads only the entries that it looks for.
//
// The file begins with a header and the heads of chains; records follow, little endian:
//
//     header   16 bytes
//     head     u64, the offset of its chain's newest record; 0: none; one for each chain
//     record   u64 own offset, u64 offset of the next older record of the chain or 0,
//              u32 length, and so many bytes: u8 kind, text key, text value
//
// A change appends a record and then moves the head of its chain, so that readers need no lock, and
// nobody reaches the remains of a process that died while it wrote. On a network file system a
// reader needs a lock, which makes the changes of other hosts visible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <pccl/status.h>
#include "csrc/base/unique_fd.h"

namespace pccl::bootstrap {

class HashFile {
   public:
    HashFile(UniqueFd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

    [[nodiscard]] int descriptor() const { return file_.get(); }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] Result<std::size_t> size() const;
    /// Returns false while the process that creates the file still writes the header. Returns
    /// kInvalidArgument if the file is no hash table.
    [[nodiscard]] Result<bool> is_complete() const;
    /// Returns the value of `key`; nullopt where there is none. kUnavailable names the first
    /// damaged byte. Without a lock, a change under way may look like damage.
    [[nodiscard]] Result<std::optional<std::string>> find(std::string_view key) const;

    /// Returns the error of a system call: "cannot read the store PATH: ...".
    [[nodiscard]] Status fault(int error, std::string_view what) const;

    // These require an exclusive lock:

    /// Makes an empty table of an empty file.
    [[nodiscard]] Status create();
    /// Returns kResourceExhausted when the file would exceed 256 MiB.
    [[nodiscard]] Status set(std::string_view key, std::string_view value);
    [[nodiscard]] Status remove(std::string_view key);

   private:
    enum class Kind : std::uint8_t { kSet = 1, kRemove = 2 };
    struct Record {
        std::uint64_t older = 0;
        Kind kind = Kind::kSet;
        std::string key;
        std::string value;
    };

    [[nodiscard]] Result<std::uint64_t> head_of(std::string_view key) const;
    [[nodiscard]] Result<Record> record_at(std::uint64_t offset) const;
    [[nodiscard]] Result<std::string> read(std::uint64_t offset, std::size_t most) const;
    [[nodiscard]] Status write(std::uint64_t offset, std::string_view bytes);
    [[nodiscard]] Status append(Kind kind, std::string_view key, std::string_view value);
    [[nodiscard]] Status damaged(std::uint64_t offset) const;

    UniqueFd file_;
    std::string path_;
};

}  // namespace pccl::bootstrap
