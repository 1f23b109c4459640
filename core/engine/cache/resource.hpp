#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/model/error.hpp"
#include "core/model/extent.hpp"

namespace forebay {

/// A name with an amount that holders take and give back: bytes of a node-local device, of memory.
/// Its state may lie in memory that the processes of a node share; then holders may be anywhere in
/// them. A process that dies keeps what it holds, hence nobody waits without a limit.
///
/// Fairness: each of n holders is entitled to 1/n of the amount, and at least to one take. More
/// than that it gets only while nobody waits for what he is entitled to.
/// Worked example: amount 100, holders A and B. A alone may take 100. If B then waits for 30, A
/// gets nothing more until B has it, whatever A gives back meanwhile.
class Resource {
 public:
  static constexpr int most_holders = 1024;
  /// What its state takes, for memory that is shared.
  static Bytes state_bytes();

  /// In memory of its own.
  Resource(std::string name, Bytes amount);
  /// In `shared`: state_bytes() bytes, zero-filled before the first Resource was put there, aligned
  /// as malloc aligns, and outliving this. The first one's amount holds for all. Others wait until
  /// it is there: where who puts it there may die meanwhile, they are to be kept out until then.
  Resource(std::string name, Bytes amount, std::span<std::byte> shared);

  const std::string& name() const { return name_; }
  Bytes amount() const;
  Bytes free() const;

 private:
  friend class ResourceHolder;
  struct State;
  class Locked;

  std::string name_;
  std::shared_ptr<State> state_;
};

/// Somebody who takes and gives back. Thread-safe. Gives all back at its end.
class ResourceHolder {
 public:
  /// Error: no_space if there are most_holders already.
  static Result<std::unique_ptr<ResourceHolder>> join(std::shared_ptr<Resource> resource);
  ~ResourceHolder();
  ResourceHolder(const ResourceHolder&) = delete;
  ResourceHolder& operator=(const ResourceHolder&) = delete;

  /// Whether it was granted. Waits up to `patience` for others to give back.
  bool take(Bytes amount, std::chrono::milliseconds patience = {});
  void give_back(Bytes amount);

  Bytes held() const;
  /// What it is entitled to.
  Bytes share() const;
  /// Somebody else waits, and what this holder has would help.
  bool wanted_by_others() const;
  const Resource& resource() const { return *resource_; }

 private:
  ResourceHolder(std::shared_ptr<Resource> resource, std::size_t place);
  bool grantable(Bytes amount) const;

  std::shared_ptr<Resource> resource_;
  std::size_t place_;
};

}  // namespace forebay
