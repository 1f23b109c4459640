#include "testbed/state_writer.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <cstdio>
#include <utility>

#include "testbed/state.hpp"

namespace forebay::testbed {

StateWriter::StateWriter(std::string path, std::function<std::string()> describe)
    : path_(std::move(path)), describe_(std::move(describe)) {
  write();
  thread_ = std::thread([this] { run(); });
}

StateWriter::~StateWriter() {
  stopping_ = true;
  // Blocked there and waited for by sigtimedwait: it stays pending until the thread takes it.
  ::pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

void StateWriter::write() {
  const Status status = replace_file(path_, describe_());
  if (!status && !complained_) {
    fmt::print(stderr, "forebay-testbedfs: {}\n", to_string(status.error()));
  }
  complained_ = !status;
}

void StateWriter::run() {
  sigset_t request;
  ::sigemptyset(&request);
  ::sigaddset(&request, SIGUSR1);
  const timespec period{1, 0};
  while (!stopping_) {
    ::sigtimedwait(&request, nullptr, &period);
    if (!stopping_) write();
  }
}

}  // namespace forebay::testbed
