// SPDX-License-Identifier: Apache-2.0

// Functions of libssh, found at their first use.
//
// They are declared here so that no build needs libssh's headers. They belong to its stable
// interface, libssh.so.4.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pccl::sys::libssh {

using Session = void*;
using Channel = void*;
using Key = void*;

constexpr int kOk = 0;
constexpr int kAgain = -2;
constexpr int kEof = -127;
constexpr int kAuthDenied = 1;
constexpr int kAuthPartial = 2;
constexpr int kAuthAgain = 4;
constexpr int kOptionHost = 0;
constexpr int kOptionFd = 3;
constexpr int kOptionUser = 4;
constexpr int kOptionProcessConfig = 38;
constexpr int kHashSha256 = 2;
constexpr int kWritePending = 8;

struct LibsshFunctions {
    Session (*create)() = nullptr;
    void (*destroy)(Session) = nullptr;
    int (*set_option)(Session, int, const void*) = nullptr;
    void (*set_blocking)(Session, int) = nullptr;
    int (*connect)(Session) = nullptr;
    const char* (*last_error)(void*) = nullptr;
    int (*poll_flags)(Session) = nullptr;
    int (*flush)(Session, int) = nullptr;
    int (*server_key)(Session, Key*) = nullptr;
    int (*hash_of_key)(Key, int, unsigned char**, std::size_t*) = nullptr;
    char* (*fingerprint)(int, unsigned char*, std::size_t) = nullptr;
    void (*free_hash)(unsigned char**) = nullptr;
    void (*free_text)(char*) = nullptr;
    void (*free_key)(Key) = nullptr;
    int (*read_key_file)(const char*, const char*, void*, void*, Key*) = nullptr;
    int (*authenticate)(Session, const char*, Key) = nullptr;
    Channel (*create_channel)(Session) = nullptr;
    void (*destroy_channel)(Channel) = nullptr;
    int (*open_channel)(Channel) = nullptr;
    int (*request_subsystem)(Channel, const char*) = nullptr;
    int (*read)(Channel, void*, std::uint32_t, int) = nullptr;
    int (*write)(Channel, const void*, std::uint32_t) = nullptr;
    int (*is_eof)(Channel) = nullptr;
};

/// Returns the functions, valid for the life of the process; null where libssh is not installed or
/// lacks one of them.
[[nodiscard]] const LibsshFunctions* functions();

}  // namespace pccl::sys::libssh
