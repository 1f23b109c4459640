// Reads a file that is read ahead through mappings, half of it, and then puts memory of its own in
// the place of each, by every call that does that; what it stores there must stay, while what it
// has read is let go of in another thread.
//
// usage: mappings PATH ROUNDS cold|warm; cold: it is taken out of the page cache before. Status 1
// and a message where a byte is wrong or a call fails. The bytes of the file are functions of their
// places.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>

namespace {

constexpr std::size_t piece = 64 * 1024;
constexpr char own = 'o';

struct Region {
  char* place;
  std::size_t length;
  const char* way;
};

[[noreturn]] void fail(const char* what, const char* way) {
  std::fprintf(stderr, "%s: %s: %s\n", way, what, std::strerror(errno));
  std::exit(1);
}

char byte_at(std::size_t offset) { return static_cast<char>(offset / piece * 7 + offset % 251); }

bool read_half(const Region& file) {
  for (std::size_t at = 0; at < file.length / 2; ++at) {
    const char found = const_cast<const volatile char*>(file.place)[at];
    if (found != byte_at(at)) return false;
  }
  return true;
}

void* own_memory(void* wanted, std::size_t length, int flags = 0) {
  return ::mmap(wanted, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

void* fixed(const Region& file) { return own_memory(file.place, file.length, MAP_FIXED); }

void* moved(const Region& file) {
  void* other = own_memory(nullptr, file.length);
  if (other == MAP_FAILED) return MAP_FAILED;
  std::memset(other, own, file.length);
  return ::mremap(other, file.length, file.length, MREMAP_MAYMOVE | MREMAP_FIXED, file.place);
}

void* stored_in(const Region& file) {
  const int all = PROT_READ | PROT_WRITE;
  // What is read first is let go of first.
  if (::mprotect(file.place, piece, all) != 0) return MAP_FAILED;
  return ::pkey_mprotect(file.place, file.length, all, -1) == 0 ? file.place : MAP_FAILED;
}

void* unmapped_before(const Region& file) {
  ::munmap(file.place, file.length);
  return own_memory(file.place, file.length);
}

/// By a call that nobody sees.
void* unmapped_unseen(const Region& file) {
  ::syscall(SYS_munmap, file.place, file.length);
  return own_memory(file.place, file.length);
}

struct Way {
  const char* name;
  void* (*replace)(const Region& file);
};
constexpr std::array ways = {Way{"mmap with MAP_FIXED", fixed}, Way{"mremap", moved},
                             Way{"mprotect", stored_in}, Way{"munmap", unmapped_before},
                             Way{"munmap past us", unmapped_unseen}};

void check_and_unmap(const Region& region) {
  char* const end = region.place + region.length;
  if (std::any_of(region.place, end, [](char byte) { return byte != own; })) {
    fail("what was stored is gone", region.way);
  }
  ::munmap(region.place, region.length);
}

}  // namespace

int main(int, char** arguments) {
  const char* const path = arguments[1];
  const std::size_t rounds = std::stoul(arguments[2]);
  const bool is_cold = std::strcmp(arguments[3], "cold") == 0;
  std::deque<Region> replaced;
  for (std::size_t round = 0; round < rounds; ++round) {
    const Way& way = ways[round % ways.size()];
    const int descriptor = ::open(path, O_RDONLY | O_CLOEXEC);
    struct stat status{};
    if (descriptor < 0 || ::fstat(descriptor, &status) != 0) fail("open", way.name);
    if (is_cold) ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    Region file{nullptr, static_cast<std::size_t>(status.st_size), way.name};
    // A private mapping alone may be stored in.
    const int kind = way.replace == stored_in || round % 2 == 0 ? MAP_PRIVATE : MAP_SHARED;
    void* place = ::mmap(nullptr, file.length, PROT_READ, kind, descriptor, 0);
    ::close(descriptor);
    if (place == MAP_FAILED) fail("map the file", way.name);
    file.place = static_cast<char*>(place);
    if (!read_half(file)) fail("wrong byte", way.name);
    place = way.replace(file);
    if (place == MAP_FAILED) fail("replace it", way.name);
    std::memset(place, own, file.length);
    replaced.push_back({static_cast<char*>(place), file.length, way.name});
    if (replaced.size() <= 3) continue;
    check_and_unmap(replaced.front());
    replaced.pop_front();
  }
  for (const Region& region : replaced) check_and_unmap(region);
  std::puts("all as it should be");
}
