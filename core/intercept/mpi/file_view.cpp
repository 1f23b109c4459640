#include "core/intercept/mpi/file_view.hpp"

#include <cstring>
#include <utility>

#include "core/intercept/mpi/type_contents.hpp"

namespace forebay {
namespace {

/// What a tree can walk to; no file system goes further.
constexpr Bytes most_offset = Bytes{1} << 62;

/// A handle of our own for `type`; predefined ones are not owned by anybody.
MPI_Datatype keep(MPI_Datatype type) {
  if (is_predefined(type)) return type;
  MPI_Datatype copy = MPI_DATATYPE_NULL;
  PMPI_Type_dup(type, &copy);
  return copy;
}

void let_go(MPI_Datatype& type) {
  if (type != MPI_DATATYPE_NULL && !is_predefined(type)) PMPI_Type_free(&type);
}

}  // namespace

FileView::FileView() : tiled_{StridedTree::contiguous(1), 0, 1} {}

FileView::FileView(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                   std::string representation, TiledTree tiled)
    : displacement_(displacement),
      etype_(keep(etype)),
      filetype_(keep(filetype)),
      representation_(std::move(representation)),
      tiled_(std::move(tiled)) {
  MPI_Count size = 0;
  PMPI_Type_size_x(etype, &size);
  etype_size_ = size;
}

FileView::~FileView() {
  let_go(etype_);
  let_go(filetype_);
}

FileView::FileView(FileView&& other) noexcept : FileView() { *this = std::move(other); }

FileView& FileView::operator=(FileView&& other) noexcept {
  std::swap(displacement_, other.displacement_);
  std::swap(etype_, other.etype_);
  std::swap(filetype_, other.filetype_);
  std::swap(representation_, other.representation_);
  std::swap(etype_size_, other.etype_size_);
  std::swap(tiled_, other.tiled_);
  return *this;
}

std::optional<Bytes> FileView::position_of(MPI_Offset offset) const {
  Bytes position = 0;
  if (__builtin_mul_overflow(static_cast<Bytes>(offset), etype_size_, &position)) return {};
  return position;
}

MPI_Offset FileView::offset_of(Bytes position) const {
  return etype_size_ == 0 ? 0 : position / etype_size_;
}

bool FileView::reaches(Bytes start, Bytes length) const {
  const Bytes size = tiled_.tree.size();
  if (length == 0 || size == 0) return true;
  Bytes last = 0, end = 0;
  return !__builtin_add_overflow(start, length - 1, &last) &&
         !__builtin_mul_overflow(last / size, tiled_.extent, &end) &&
         !__builtin_add_overflow(end, tiled_.displacement, &end) &&
         !__builtin_add_overflow(end, tiled_.tree.upper(), &end) && end <= most_offset;
}

Bytes FileView::byte_offset(Bytes position) const {
  if (tiled_.tree.size() == 0) return displacement_;
  TreeCursor cursor(tiled_);
  cursor.seek_data(position);
  return cursor.offset();
}

Bytes FileView::end_position(Bytes file_size) const {
  if (tiled_.tree.size() == 0) return 0;
  const Bytes visible = data_before(tiled_, file_size);
  return (visible + etype_size_ - 1) / etype_size_ * etype_size_;
}

void FileView::tell(MPI_Offset* displacement, MPI_Datatype* etype, MPI_Datatype* filetype,
                    char* representation) const {
  *displacement = displacement_;
  *etype = keep(etype_);
  *filetype = keep(filetype_);
  std::strcpy(representation, representation_.c_str());
}

}  // namespace forebay
