// Reads a file by its first thread, and by another that goes on when the first has ended
// (pthread_exit, or is cancelled): the program ends with that one, by its exit handlers. Prints the
// sums of the bytes.
//
// usage: last_thread FILE [cancel]

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace {

pthread_t first;
bool cancels = false;

unsigned long sum_of(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  std::array<unsigned char, 50'000> piece{};
  unsigned long sum = 0;
  for (ssize_t moved = 0; (moved = ::read(file, piece.data(), piece.size())) > 0;) {
    for (ssize_t at = 0; at < moved; ++at) sum += piece[static_cast<std::size_t>(at)];
  }
  return sum;
}

void* go_on(void* path) {
  if (cancels) ::pthread_cancel(first);
  ::pthread_join(first, nullptr);
  std::printf("%lu\n", sum_of(static_cast<const char*>(path)));
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return 2;
  cancels = argc == 3;
  if (std::atexit([] { std::puts("at the end"); }) != 0) return 2;
  std::printf("%lu\n", sum_of(argv[1]));
  first = ::pthread_self();
  pthread_t other{};
  if (::pthread_create(&other, nullptr, go_on, argv[1]) != 0) return 2;
  while (cancels) ::pause();
  ::pthread_exit(nullptr);
}
