#include "core/intercept/posix/own_heap.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <mutex>
#include <new>
#include <utility>

#include "core/intercept/posix/registry.hpp"

namespace forebay::posix {
namespace {

/// From the kernel, past our own mmap(), which looks at what programs map. Null: there is no
/// memory.
void* map(std::size_t bytes) {
  const long place = ::syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): what the kernel returns.
  return place == -1 ? nullptr : reinterpret_cast<void*>(place);
}

/// A pool asks twice for one block of it: for a chunk, and for room in its list of chunks. That the
/// second failed was lost on some versions of libstdc++ (12), which took the block from a chunk
/// that was not there. So what the second takes is there before.
class Pages final : public std::pmr::memory_resource {
 public:
  /// Before the pool is asked. False: there is no memory.
  bool prepare() {
    is_second_ = false;
    if (spare_ == nullptr) spare_ = map(spare_bytes);
    return spare_ != nullptr;
  }

 private:
  static constexpr std::size_t spare_bytes = std::size_t{64} << 10;

  void* do_allocate(std::size_t bytes, std::size_t /*alignment*/) override {
    void* place = map(bytes);
    if (place == nullptr && is_second_ && bytes <= spare_bytes) {
      place = std::exchange(spare_, nullptr);
    }
    if (place == nullptr) throw std::bad_alloc();
    is_second_ = true;
    return place;
  }
  void do_deallocate(void* place, std::size_t bytes, std::size_t /*alignment*/) override {
    ::syscall(SYS_munmap, place, bytes);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  void* spare_ = nullptr;
  bool is_second_ = false;
};

/// What is longer comes from the kernel each time, and goes back.
constexpr std::size_t largest_kept = std::size_t{16} << 10;

struct Heap {
  std::mutex mutex;
  Pages pages;
  // Tables of less than a page come in pages, too: few, and mapped once. So are names,
  // which come and go with each opening.
  std::pmr::unsynchronized_pool_resource pool{{.largest_required_pool_block = largest_kept},
                                              &pages};  ///< Guarded by mutex.
};

/// Never destroyed: objects are freed until the very end of the program.
Heap& heap() {
  alignas(Heap) static std::byte place[sizeof(Heap)];
  static Heap& made = *new (place) Heap;
  return made;
}

/// While the heap changes, calls of a signal handler are left to the C library.
class Changing {
 public:
  Changing() : was_inside_(inside) {
    inside = true;
    heap().mutex.lock();
  }
  ~Changing() {
    heap().mutex.unlock();
    inside = was_inside_;
  }
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;

 private:
  const bool was_inside_;
};

/// In front of what is handed out: deleting tells neither the length nor the alignment.
struct Block {
  void* begin;
  std::size_t length;
};

void* take(std::size_t size, std::size_t alignment) {
  const std::size_t before = std::max(sizeof(Block), alignment);
  const std::size_t length = before + size;
  const Changing changing;
  if (!heap().pages.prepare()) throw std::bad_alloc();
  void* begin = heap().pool.allocate(length, std::max(alignof(std::max_align_t), alignment));
  std::byte* place = static_cast<std::byte*>(begin) + before;
  new (place - sizeof(Block)) Block{begin, length};
  return place;
}

void give_back(void* place, std::size_t alignment) noexcept {
  if (place == nullptr) return;
  const Block block =
      *std::launder(reinterpret_cast<Block*>(static_cast<std::byte*>(place) - sizeof(Block)));
  const Changing changing;
  heap().pool.deallocate(block.begin, block.length, std::max(alignof(std::max_align_t), alignment));
}

}  // namespace

void lock_heap() { heap().mutex.lock(); }
void unlock_heap() { heap().mutex.unlock(); }

}  // namespace forebay::posix

// All other forms of the standard library call these [new.delete]. They are this library's alone:
// exports.map keeps them within.
void* operator new(std::size_t size) { return forebay::posix::take(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return forebay::posix::take(size, static_cast<std::size_t>(alignment));
}
// A sanitizer's own form of this one does not.
void* operator new(std::size_t size, const std::nothrow_t& /*none*/) noexcept {
  try {
    return forebay::posix::take(size, 1);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* place) noexcept { forebay::posix::give_back(place, 1); }
void operator delete(void* place, std::size_t /*size*/) noexcept {
  forebay::posix::give_back(place, 1);
}
void operator delete(void* place, std::align_val_t alignment) noexcept {
  forebay::posix::give_back(place, static_cast<std::size_t>(alignment));
}
void operator delete(void* place, std::size_t /*size*/, std::align_val_t alignment) noexcept {
  forebay::posix::give_back(place, static_cast<std::size_t>(alignment));
}
