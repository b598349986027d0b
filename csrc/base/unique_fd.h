// SPDX-License-Identifier: Apache-2.0

// Owner of a file descriptor, and the one way to open a file for reading.
#pragma once

#include <fcntl.h>

#include <string>
#include <utility>

#include <pccl/export.h>

namespace pccl {

/// Descriptor that a child of fork() does not share: there the number refers to an unused eventfd,
/// from the first moment on, until it is closed. Otherwise the child's calls would affect the
/// parent's connections, locks and epoll sets, and a descriptor that the parent closes would stay
/// open in the child.
class PCCL_API UniqueFd {
   public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) { take(fd); }
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this == &other) return *this;
        reset();
        fd_ = std::exchange(other.fd_, -1);
        return *this;
    }
    UniqueFd(const UniqueFd&) = delete;
    UniqueFd& operator=(const UniqueFd&) = delete;
    ~UniqueFd() { reset(); }

    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] bool is_open() const { return fd_ >= 0; }
    /// Releases the descriptor; the caller closes it.
    int release();
    /// Closes the present descriptor and takes `fd`.
    void reset(int fd = -1);

   private:
    void take(int fd);

    int fd_ = -1;
};

/// Opens a file for reading, with open(2)'s `flags` besides; the result is not open, and errno is
/// set, on failure. Does not block: it opens a pipe, too, and the reader checks for data.
[[nodiscard]] inline UniqueFd open_to_read(const std::string& path, int flags = 0) {
    return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags));
}

}  // namespace pccl
