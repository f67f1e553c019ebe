// Names that do not resolve, on any machine: some name servers answer for every
// name, and some machines resolve their own one by themselves.
#pragma once

#include <string>

namespace lockstep::testing {

// A shell command for a mount namespace of one's own: from there on /etc/hosts
// alone knows names.
inline const std::string kOnlyHostsFile =
    "echo 'hosts: files' > \"$TMPDIR/nsswitch\" && "
    "mount --bind \"$TMPDIR/nsswitch\" /etc/nsswitch.conf && "
    "{ [ ! -d /run/nscd ] || mount -t tmpfs tmpfs /run/nscd; }";

}  // namespace lockstep::testing
