"""File systems: what a path is on, how its files are striped, and what storage is local to the
node."""

import os
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from forebay import block_devices

# Types as /proc/self/mountinfo names them, that are not shared between nodes and not in memory.
_DISK_TYPES = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs"})
# Types whose data is on other hosts.
_NETWORK_TYPES = frozenset(
    {
        *("afs", "beegfs", "ceph", "cifs", "gpfs", "lustre", "nfs", "nfs4", "panfs", "pvfs2"),
        *("smb3", "wekafs", "fuse.beegfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.glusterfs"),
        *("fuse.juicefs", "fuse.sshfs"),
    }
)
STRIPE_ATTRIBUTE = "user.forebay.stripe"
LUSTRE_ATTRIBUTE = "lustre.lov"
# Magic, pattern, object, stripe size, stripe count of a layout of one component.
# [lustre/include/uapi/linux/lustre/lustre_user.h]
_LOV = struct.Struct("<II16xIH")
_LOV_MAGICS = (0x0BD10BD0, 0x0BD30BD0, 0x0BD50BD0)
_ALL_SERVERS = 0xFFFF


@dataclass(frozen=True)
class Mount:
    """The mounted file system that holds a path."""

    point: str
    type: str  # "fuse.NAME" for FUSE file systems
    source: str
    device: str = ""  # "MAJOR:MINOR" of what it is on; major 0: no block device, as far as told


@dataclass(frozen=True)
class Stripe:
    """How a file or directory is spread over servers. `size` in bytes."""

    size: int
    count: int
    told_by: str


@dataclass(frozen=True)
class LocalPath:
    """Storage of this node alone. Sizes in bytes."""

    path: str
    type: str
    total: int
    free: int
    writable: bool
    flash: bool  # it keeps what it has without power, and does not rotate
    emptied: bool  # when a job ends or the node starts, as $TMPDIR and /tmp may be


def is_over_network(type_of_mount: str) -> bool:
    """Whether what is read and written goes to other hosts, as far as the type tells."""
    return type_of_mount in _NETWORK_TYPES


def is_local_disk(type_of_mount: str) -> bool:
    """Whether it is on disks of this node, as far as the type tells."""
    return type_of_mount in _DISK_TYPES


def is_local(type_of_mount: str) -> bool:
    """Whether it is on disks or in the memory of this node, so that nothing is striped there."""
    return is_local_disk(type_of_mount) or type_of_mount in ("tmpfs", "ramfs")


def mounts() -> list[Mount]:
    """All mounts of this process, in the order in which they were made."""
    found = []
    table = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    for line in table.rstrip("\n").split("\n"):
        left, _, right = line.partition(" - ")
        kind, source, *_ = right.split(" ")
        _, _, device, _, point, *_ = left.split(" ")
        found.append(Mount(_unescaped(point), kind, _unescaped(source), device))
    return found


def _unescaped(word: str) -> str:
    """The kernel writes blanks and backslashes in octal. [proc(5)]"""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)


def mount_of(path: Path) -> Mount:
    """The file system of `path`, or of the nearest directory above it that exists."""
    existing = existing_part(path)
    best = Mount("/", "unknown", "unknown")
    for mount in mounts():
        inside = existing == Path(mount.point) or Path(mount.point) in existing.parents
        if inside and len(mount.point) >= len(best.point):
            best = mount
    return best


def existing_part(path: Path) -> Path:
    """`path` made absolute, cut back to what exists."""
    path = Path(os.path.realpath(path))
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def block_bytes(path: Path) -> int:
    """What the file system of `path` wants to be read and written in: a block of GPFS, what NFS
    sends at once, a page of most local ones."""
    return os.statvfs(existing_part(path)).f_bsize


def stripe_of(path: Path) -> Stripe | None:
    """How `path` (or the nearest existing directory above) is striped; None if it is not, or
    nothing tells. Sources: the testbed's attribute, then `lfs getstripe`."""
    existing = existing_part(path)
    told = told_stripe(os.fsencode(existing))
    if told is not None:
        return told
    lfs = shutil.which("lfs")
    if lfs is None or mount_of(existing).type != "lustre":
        return None
    numbers = []
    for option in ("-S", "-c"):
        answer = subprocess.run(
            [lfs, "getstripe", "-d", option, str(existing)]
            if existing.is_dir()
            else [lfs, "getstripe", option, str(existing)],
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
        )
        words = answer.stdout.split()
        if answer.returncode != 0 or not words or not words[-1].lstrip("-").isdigit():
            return None
        numbers.append(int(words[-1]))
    return Stripe(numbers[0], numbers[1], "lfs getstripe")


def told_stripe(path: bytes) -> Stripe | None:
    """What an attribute of a path that is there tells of its striping, without asking a program:
    None on a file system with none, or with a layout of several components. Raises
    FileNotFoundError where it is not there."""
    for name, parsed in ((STRIPE_ATTRIBUTE, _parsed_attribute), (LUSTRE_ATTRIBUTE, parsed_lov)):
        try:
            return parsed(os.getxattr(path, name))
        except FileNotFoundError:
            raise
        except (OSError, ValueError, struct.error):
            continue
    return None


def parsed_lov(attribute: bytes) -> Stripe:
    """Lustre's attribute of a layout of one component. Raises ValueError or struct.error."""
    magic, _, size, count = _LOV.unpack_from(attribute)
    if magic not in _LOV_MAGICS or not size or count in (0, _ALL_SERVERS):
        raise ValueError(f"a layout of magic {magic:#x}, {count} stripes of {size} bytes")
    return Stripe(size, count, f"attribute {LUSTRE_ATTRIBUTE}")


def _parsed_attribute(attribute: bytes) -> Stripe:
    """The testbed's "size=65536,count=4,lock=1". Raises ValueError."""
    text = attribute.decode()
    fields = dict(item.split("=", 1) for item in text.split(","))
    try:
        return Stripe(int(fields["size"]), int(fields["count"]), f"attribute {STRIPE_ATTRIBUTE}")
    except KeyError as error:
        raise ValueError(text) from error


def is_local_flash(mount: Mount, sys: Path = Path("/sys")) -> bool:
    """Whether it is on flash of this node (NVMe, SSD), also through volumes and encryption."""
    if mount.type not in _DISK_TYPES:
        return False
    number = block_devices.number_of(mount.device, mount.source)
    return number is not None and block_devices.is_local_flash(number, sys)


def local_paths() -> list[LocalPath]:
    """Storage local to this node: memory (/dev/shm), $TMPDIR, mounted local flash, and /var/tmp
    where that is on such."""
    temporary = Path(os.environ.get("TMPDIR", "/tmp"))
    lasting = [
        Path(mount.point)
        for mount in mounts()
        if is_local_flash(mount)
        or (mount.type in _DISK_TYPES and mount.source.startswith("/dev/nvme"))
    ]
    if is_local_flash(mount_of(Path("/var/tmp"))):
        lasting.append(Path("/var/tmp"))
    found: dict[Path, LocalPath] = {}
    for path in [Path("/dev/shm"), temporary, *lasting]:
        if not path.is_dir() or path in found:
            continue
        usage = shutil.disk_usage(path)
        mount = mount_of(path)
        found[path] = LocalPath(
            path=str(path),
            type=mount.type,
            total=usage.total,
            free=usage.free,
            writable=os.access(path, os.W_OK),
            flash=is_local_flash(mount),
            emptied=path == Path("/tmp") or (path == temporary and path not in lasting),
        )
    return list(found.values())
