/* Prints the XXH64 of a file, seed 0, 16 hexadecimal digits, as the names of report records hold
 * it. */
#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

int main(int argc, char** argv) {
  FILE* file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (file == NULL) return 1;
  XXH64_state_t* state = XXH64_createState();
  XXH64_reset(state, 0);
  char bytes[4096];
  size_t length;
  while ((length = fread(bytes, 1, sizeof bytes, file)) > 0) XXH64_update(state, bytes, length);
  printf("%016llx\n", (unsigned long long)XXH64_digest(state));
  XXH64_freeState(state);
  fclose(file);
  return 0;
}
