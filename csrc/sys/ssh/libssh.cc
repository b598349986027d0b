// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/ssh/libssh.h"

#include <dlfcn.h>

#include <optional>

#include "csrc/sys/library.h"

namespace pccl::sys::libssh {
namespace {

bool find_keys(void* library, LibsshFunctions& call) {
    return find_function(library, "ssh_get_server_publickey", call.server_key) &&
           find_function(library, "ssh_get_publickey_hash", call.hash_of_key) &&
           find_function(library, "ssh_get_fingerprint_hash", call.fingerprint) &&
           find_function(library, "ssh_clean_pubkey_hash", call.free_hash) &&
           find_function(library, "ssh_string_free_char", call.free_text) &&
           find_function(library, "ssh_key_free", call.free_key) &&
           find_function(library, "ssh_pki_import_privkey_file", call.read_key_file) &&
           find_function(library, "ssh_userauth_publickey", call.authenticate);
}

bool find_session(void* library, LibsshFunctions& call) {
    return find_function(library, "ssh_new", call.create) &&
           find_function(library, "ssh_free", call.destroy) &&
           find_function(library, "ssh_options_set", call.set_option) &&
           find_function(library, "ssh_set_blocking", call.set_blocking) &&
           find_function(library, "ssh_connect", call.connect) &&
           find_function(library, "ssh_get_error", call.last_error) &&
           find_function(library, "ssh_get_poll_flags", call.poll_flags) &&
           find_function(library, "ssh_blocking_flush", call.flush);
}

bool find_channel(void* library, LibsshFunctions& call) {
    return find_function(library, "ssh_channel_new", call.create_channel) &&
           find_function(library, "ssh_channel_free", call.destroy_channel) &&
           find_function(library, "ssh_channel_open_session", call.open_channel) &&
           find_function(library, "ssh_channel_request_subsystem", call.request_subsystem) &&
           find_function(library, "ssh_channel_read_nonblocking", call.read) &&
           find_function(library, "ssh_channel_write", call.write) &&
           find_function(library, "ssh_channel_is_eof", call.is_eof);
}

std::optional<LibsshFunctions> load() {
    void* const library = ::dlopen("libssh.so.4", RTLD_NOW | RTLD_LOCAL);
    LibsshFunctions call;
    if (library == nullptr || !find_session(library, call) || !find_keys(library, call) ||
        !find_channel(library, call))
        return std::nullopt;
    return call;
}

}  // namespace

const LibsshFunctions* functions() {
    static const std::optional<LibsshFunctions> loaded = load();
    return loaded ? &*loaded : nullptr;
}

}  // namespace pccl::sys::libssh
