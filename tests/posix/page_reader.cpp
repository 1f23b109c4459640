// Reads pieces of a file, by calls or through a mapping, and prints the sum of their bytes. Between
// opening the file and reading it waits for a line of input.
//
// usage: page_reader read|map FILE PIECES STEP LENGTH

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const int file = open(argv[2], O_RDONLY | O_CLOEXEC);
  const long pieces = std::strtol(argv[3], nullptr, 10);
  const long step = std::strtol(argv[4], nullptr, 10);
  const auto length = static_cast<size_t>(std::strtol(argv[5], nullptr, 10));
  const auto size = static_cast<size_t>(pieces * step);
  const bool maps = std::strcmp(argv[1], "map") == 0;
  const unsigned char* view = nullptr;
  if (maps) {
    void* place = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    if (place == MAP_FAILED) return 1;
    view = static_cast<const unsigned char*>(place);
  }
  std::puts("open");
  std::fflush(stdout);
  std::getchar();
  std::vector<unsigned char> into(length);
  unsigned long sum = 0;
  for (long i = 0; i < pieces; ++i) {
    const unsigned char* bytes = maps ? view + i * step : into.data();
    if (!maps && pread(file, into.data(), length, i * step) != static_cast<ssize_t>(length)) {
      return 1;
    }
    for (size_t at = 0; at < length; ++at) sum += bytes[at];
  }
  std::printf("%lu\n", sum);
  return 0;
}
