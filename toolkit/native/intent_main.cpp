// What `forebay intent show` runs: tells what is wrong in an intent file, as the libraries that
// read it in a run would.
//
// usage: forebay-intent NAME < FILE
// Exit status: 0 if nothing is; 1 if something is, a line each on standard output; 2 if the file as
// a whole has no effect, for the reason on standard error.

#include <cstdio>
#include <string>

#include "core/model/hints.hpp"
#include "core/storage/text_file.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: forebay-intent NAME < FILE\n", stderr);
    return 2;
  }
  const auto text = forebay::text_of("/dev/stdin");
  const auto problems =
      text ? forebay::intent_problems(*text, argv[1]) : tl::unexpected(text.error());
  if (!problems) {
    std::fprintf(stderr, "%s\n", to_string(problems.error()).c_str());
    return 2;
  }
  for (const auto& problem : *problems) std::printf("%s\n", to_string(problem).c_str());
  return problems->empty() ? 0 : 1;
}
