// Reads pieces of a file by std::ifstream, the last one first, and prints the sum of their bytes.
// Between opening the file and reading it waits for a line of input.
//
// usage: file_streams FILE PIECES STEP LENGTH

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const long pieces = std::strtol(argv[2], nullptr, 10);
  const long step = std::strtol(argv[3], nullptr, 10);
  std::vector<char> into(std::strtoul(argv[4], nullptr, 10));
  std::ifstream file(argv[1], std::ios::binary);
  std::puts("open");
  std::fflush(stdout);
  std::getchar();
  unsigned long sum = 0;
  for (long i = 0; i < pieces; ++i) {
    file.seekg((i == 0 ? pieces - 1 : i - 1) * step);
    if (!file.read(into.data(), static_cast<std::streamsize>(into.size()))) return 1;
    for (const char byte : into) sum += static_cast<unsigned char>(byte);
  }
  std::printf("%lu\n", sum);
  return 0;
}
