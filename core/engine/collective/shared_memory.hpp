#pragma once

#include <memory>
#include <string>

#include "core/engine/collective/exchange.hpp"

namespace forebay {

/// A POSIX shared memory object that one process makes and others of the node attach to by name.
/// Its pages are reserved when it is made: running out of memory is an error here, not a SIGBUS
/// later.
class SharedMemory final : public SharedRegion {
 public:
  /// Makes an object of `size` bytes under a name of its own. Errors: no_memory, io.
  static Result<std::unique_ptr<SharedMemory>> create(Bytes size);
  static Result<std::unique_ptr<SharedMemory>> attach(const std::string& name, Bytes size);
  ~SharedMemory() override;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Removes the name: nobody can attach any more, and nothing is left behind if we crash.
  void unlink();

  const std::string& name() const { return name_; }
  std::span<std::byte> bytes() const override { return bytes_; }

 private:
  SharedMemory(std::string name, std::span<std::byte> bytes, bool owns_name);
  static Result<std::unique_ptr<SharedMemory>> map(int descriptor, const std::string& name,
                                                   Bytes size, bool owns_name);
  std::string name_;
  std::span<std::byte> bytes_;
  bool owns_name_;
};

}  // namespace forebay
