#include "core/intercept/posix/real_calls.hpp"

#include <dlfcn.h>

namespace forebay::posix::detail {

RealCalls found_calls{};
bool calls_are_found = false;

namespace {

template <typename Function>
void find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// Before any other code of ours, and before the program's.
[[gnu::constructor(101)]] void find_early() { find_calls(); }

}  // namespace

void find_calls() {
  find(found_calls.open, "open");
  find(found_calls.open64, "open64");
  find(found_calls.openat, "openat");
  find(found_calls.openat64, "openat64");
  find(found_calls.creat, "creat");
  find(found_calls.creat64, "creat64");
  find(found_calls.open_2, "__open_2");
  find(found_calls.open64_2, "__open64_2");
  find(found_calls.openat_2, "__openat_2");
  find(found_calls.openat64_2, "__openat64_2");
  find(found_calls.openat2, "openat2");
  find(found_calls.read, "read");
  find(found_calls.pread, "pread64");
  find(found_calls.readv, "readv");
  find(found_calls.preadv, "preadv64");
  find(found_calls.preadv2, "preadv64v2");
  find(found_calls.read_chk, "__read_chk");
  find(found_calls.pread_chk, "__pread64_chk");
  find(found_calls.close, "close");
  find(found_calls.close_range, "close_range");
  find(found_calls.closefrom, "closefrom");
  find(found_calls.fopen, "fopen");
  find(found_calls.fopen64, "fopen64");
  find(found_calls.fdopen, "fdopen");
  find(found_calls.freopen, "freopen");
  find(found_calls.freopen64, "freopen64");
  find(found_calls.fread, "fread");
  find(found_calls.fread_unlocked, "fread_unlocked");
  find(found_calls.fread_chk, "__fread_chk");
  find(found_calls.fread_unlocked_chk, "__fread_unlocked_chk");
  find(found_calls.fclose, "fclose");
  find(found_calls.fseek, "fseek");
  find(found_calls.fseeko, "fseeko64");
  find(found_calls.fsetpos, "fsetpos");
  find(found_calls.fsetpos64, "fsetpos64");
  find(found_calls.rewind, "rewind");
  find(found_calls.lseek, "lseek64");
  find(found_calls.mmap, "mmap64");
  find(found_calls.munmap, "munmap");
  find(found_calls.mremap, "mremap");
  find(found_calls.mprotect, "mprotect");
  find(found_calls.dup, "dup");
  find(found_calls.dup2, "dup2");
  find(found_calls.dup3, "dup3");
  find(found_calls.fcntl, "fcntl");
  find(found_calls.fcntl64, "fcntl64");
  find(found_calls.lockf, "lockf64");
  find(found_calls._exit, "_exit");
  find(found_calls._Exit, "_Exit");
  find(found_calls.prctl, "prctl");
  find(found_calls.unshare, "unshare");
  find(found_calls.setns, "setns");
  find(found_calls.execve, "execve");
  find(found_calls.execv, "execv");
  find(found_calls.execvp, "execvp");
  find(found_calls.execvpe, "execvpe");
  find(found_calls.fexecve, "fexecve");
  find(found_calls.execveat, "execveat");
  calls_are_found = true;
}

}  // namespace forebay::posix::detail
