#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/model/stripe_layout.hpp"

namespace forebay {

/// The kind of file system that holds `path`, or that would hold it: "ext4" (also for ext2 and
/// ext3, which cannot be told apart), "tmpfs", "fuse.sshfs", "lustre", ...; the magic number of
/// statfs(2) in hexadecimal if it is not known; "unknown" if neither `path` nor its directory can
/// be asked.
std::string file_system_name(const std::string& path);

/// Whether processes on several hosts see what one of them wrote as soon as its call returned,
/// without locks of their own: not in the file systems, named as by file_system_name, whose clients
/// keep what they once read for a while (NFS, SMB, sshfs, and GlusterFS, for a second as it comes).
bool coherent_between_hosts(std::string_view file_system);

/// A number that the file system of `path` has while it is mounted, and no other has; none if there
/// is no such file.
std::optional<std::uint64_t> file_system_id(const std::string& path);

/// The value of Lustre's extended attribute `lustre.lov`: a `lov_user_md` of version 1 or 3, or a
/// composite of them (lustre/include/uapi/linux/lustre/lustre_user.h), in host byte order.
/// A composite (progressive) layout changes its striping along the file, a StripeLayout cannot: the
/// widest component is taken, since the bulk of a file that is worth exchanging lies there.
/// No value: damaged, of another version, without OSTs (data on the metadata server), or with a
/// stripe count of "all", which names no number.
std::optional<StripeLayout> parse_lustre_layout(std::span<const std::byte> attribute);

/// The value of the testbed's extended attribute `user.forebay.stripe`:
/// "size=65536,count=4,lock=1", in any order; `lock` may be left out. No value: anything else.
std::optional<StripeLayout> parse_stripe_attribute(std::string_view attribute);

}  // namespace forebay
