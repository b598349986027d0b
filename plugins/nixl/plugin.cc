// SPDX-License-Identifier: Apache-2.0

// What NIXL calls once it has opened libplugin_PCCL.so.
#include "backend/backend_plugin.h"
#include "plugins/nixl/engine.h"

static_assert(NIXL_PLUGIN_API_VERSION == 1, "another plugin interface than NIXL 1.0 to 1.5 have");

nixlBackendPlugin* nixl_plugin_init() {
    return nixlBackendPluginCreator<pccl::nixl::Engine>::create(
        NIXL_PLUGIN_API_VERSION, "PCCL", PCCL_VERSION, {{"listen", ""}, {"transports", ""}},
        {DRAM_SEG, VRAM_SEG});
}

void nixl_plugin_fini() {}
