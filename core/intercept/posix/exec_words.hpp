#pragma once

#include <cstdarg>
#include <cstddef>

namespace forebay::posix {

/// Hands `run` the list of words that `first` begins and `rest` goes on with, null at its end; what
/// comes behind it is next in `rest` then. On the stack: there may be no heap, as after a vfork.
template <typename Run>
int with_words(const char* first, va_list* rest, Run run) {
  std::size_t count = 1;
  va_list counted;
  va_copy(counted, *rest);
  while (va_arg(counted, char*) != nullptr) ++count;
  va_end(counted);
  auto** words = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*)));
  words[0] = const_cast<char*>(first);
  for (std::size_t i = 1; i <= count; ++i) words[i] = va_arg(*rest, char*);
  return run(words);
}

}  // namespace forebay::posix
