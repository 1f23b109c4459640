#include "core/engine/prefetch/window_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>

#include "core/model/direct_io.hpp"
#include "core/storage/own_mapping.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t window_magic = 0x776f646e69772d62;  // "b-window"
constexpr Bytes room_offset = large_page;
constexpr Bytes most_window_units = 64;  ///< A bit each.

std::array<std::uint64_t, 5> words_of(const FileVersion& version) {
  return {version.id.device, version.id.inode, static_cast<std::uint64_t>(version.size),
          static_cast<std::uint64_t>(version.modified_ns),
          static_cast<std::uint64_t>(version.changed_ns)};
}

}  // namespace

WindowMemory::WindowMemory(const WindowKind& kind)
    : kind_(kind),
      unit_(round_up((kind.bytes + most_window_units - 1) / most_window_units, direct_alignment)),
      bytes_(round_down(kind.bytes, unit_)),
      name_(NamedMemory::name_for("window-2", kind.version, kind.plan)) {}

WindowMemory::~WindowMemory() { unmap(); }

std::optional<NamedMemory> WindowMemory::open() {
  if (name_.front() == '\0') return std::nullopt;
  auto memory = NamedMemory::open(name_.data(), room_offset + bytes_);
  if (!memory) return std::nullopt;
  if (!map(*memory)) {
    if (memory->is_new()) NamedMemory::remove(name_.data());
    return std::nullopt;
  }
  inode_ = memory->inode();
  is_maker_ = state_->magic.load() == 0;
  if (is_maker_) {
    prepare();
  } else if (!is_of_kind()) {
    return std::nullopt;
  }
  return memory;
}

void WindowMemory::discard() {
  NamedMemory::remove(name_.data());
  unmap();
}

bool WindowMemory::map(const NamedMemory& memory) {
  void* state = ::mmap(nullptr, sizeof(WindowState), PROT_READ | PROT_WRITE, MAP_SHARED,
                       memory.descriptor(), 0);
  if (state == MAP_FAILED) return false;
  state_ = static_cast<WindowState*>(state);
  ::madvise(state, sizeof(WindowState), MADV_DONTFORK);
  if (memory.is_new() && !memory.leaves_room(room_offset + bytes_)) return false;
  // Before anything is touched there.
  if (!memory.back({0, static_cast<Bytes>(sizeof(WindowState))}) ||
      !memory.back({room_offset, bytes_})) {
    return false;
  }
  reserved_bytes_ = bytes_ + large_page;
  void* reserved = ::mmap(nullptr, static_cast<std::size_t>(reserved_bytes_), PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return false;
  reserved_ = static_cast<std::byte*>(reserved);
  const auto address = static_cast<Bytes>(reinterpret_cast<std::uintptr_t>(reserved));
  std::byte* const begin = reserved_ + (round_up(address, large_page) - address);
  const auto length = static_cast<std::size_t>(bytes_);
  if (::mmap(begin, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory.descriptor(),
             room_offset) == MAP_FAILED) {
    return false;
  }
  room_ = begin;
  ::madvise(reserved_, static_cast<std::size_t>(reserved_bytes_), MADV_DONTFORK);
  return true;
}

void WindowMemory::prepare() {
  // Usual pages are what shared memory has; a device takes requests apart where its memory is not
  // in one piece. Where the kernel makes no large ones of them (before Linux 6.1), they stay.
  constexpr int collapse = 25;  // MADV_COLLAPSE
  const Bytes whole = round_down(bytes_, large_page);
  if (whole > 0) ::madvise(room_, static_cast<std::size_t>(whole), collapse);
  state_->plan.store(kind_.plan);
  state_->bytes.store(bytes_);
  state_->cursor.store(nowhere);
  state_->awaited.store(nowhere);
  const auto version = words_of(kind_.version);
  for (std::size_t i = 0; i < version.size(); ++i) state_->version[i].store(version[i]);
  state_->magic.store(window_magic);
}

bool WindowMemory::is_of_kind() const {
  const auto version = words_of(kind_.version);
  bool is_same = state_->magic.load() == window_magic && state_->plan.load() == kind_.plan &&
                 state_->bytes.load() == bytes_;
  for (std::size_t i = 0; i < version.size(); ++i) {
    is_same = is_same && state_->version[i].load() == version[i];
  }
  return is_same;
}

std::span<std::byte> WindowMemory::at(std::uint64_t units, Bytes length) const {
  return {room_ + std::countr_zero(units) * unit_, static_cast<std::size_t>(length)};
}

void WindowMemory::unmap() {
  if (state_ != nullptr) unmap_own(state_, sizeof(WindowState));
  if (reserved_ != nullptr) unmap_own(reserved_, static_cast<std::size_t>(reserved_bytes_));
  state_ = nullptr;
  reserved_ = nullptr;
  room_ = nullptr;
}

}  // namespace forebay
