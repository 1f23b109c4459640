#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/storage/file.hpp"

namespace forebay {

/// A file that is another one, but for what a derived class does differently.
class ForwardingFile : public StorageFile {
 public:
  Status write_pieces(std::span<const iovec> pieces, Bytes offset) override {
    return inner_->write_pieces(pieces, offset);
  }
  Result<Bytes> read_pieces(std::span<const iovec> pieces, Bytes offset) override {
    return inner_->read_pieces(pieces, offset);
  }
  Result<Bytes> size() override { return inner_->size(); }
  Status resize(Bytes size) override { return inner_->resize(size); }
  Status allocate(Bytes size) override { return inner_->allocate(size); }
  void lengthen(Bytes size) override { inner_->lengthen(size); }
  void read_ahead(Extent extent) override { inner_->read_ahead(extent); }
  void start_writeback(Extent extent) override { inner_->start_writeback(extent); }
  Status sync() override { return inner_->sync(); }
  Status lock(Extent range, LockKind kind) override { return inner_->lock(range, kind); }
  Status unlock(Extent range) override { return inner_->unlock(range); }
  StripeLayout layout() const override { return inner_->layout(); }
  const std::string& path() const override { return inner_->path(); }
  std::optional<FileId> id() const override { return inner_->id(); }

 protected:
  explicit ForwardingFile(std::unique_ptr<StorageFile> inner)
      : owned_(std::move(inner)), inner_(owned_.get()) {}
  /// `inner` outlives this.
  explicit ForwardingFile(StorageFile& inner) : inner_(&inner) {}

 private:
  const std::unique_ptr<StorageFile> owned_;
  StorageFile* const inner_;
};

}  // namespace forebay
