# SPDX-License-Identifier: Apache-2.0

# Debian packages for the scripts of this folder, which source it; `say` is theirs, too.

say() { printf 'setup: %s\n' "$*"; }

is_installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

# install_packages NAME...: those that are missing, as root or by a sudo that asks no password; else
# prints the line to run, and exits.
install_packages() {
    local missing=() name
    for name in "$@"; do
        is_installed "$name" || missing+=("$name")
    done
    [ ${#missing[@]} -eq 0 ] && return
    local line="apt-get install -y --no-install-recommends ${missing[*]}"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! sudo -n true 2>/dev/null; then
            say "Debian packages are missing. Run this, then the same command again:"
            echo "    sudo $line"
            exit 1
        fi
        as_root=(sudo -n)
    fi
    say "$line"
    "${as_root[@]}" apt-get update -qq
    # shellcheck disable=SC2086  # the line is a list of words
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive $line
}
