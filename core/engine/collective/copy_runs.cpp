#include "core/engine/collective/copy_runs.hpp"
#include <cstring>
namespace forebay {
void copy_contiguous(TreeCursor& m, std::byte* b, Bytes len, Direction d) {
  Bytes end = m.data_position()+len; Run r;
  while (m.next(end, r)) for (int64_t i=0;i<r.count;++i){ auto* p=reinterpret_cast<std::byte*>(r.offset+i*r.stride); if(d==Direction::gather) memcpy(b,p,r.block); else memcpy(p,b,r.block); b+=r.block; }
}
void copy_run(TreeCursor& m, const Run& f, std::byte* image, Bytes o, Direction d){ for(int64_t i=0;i<f.count;++i) copy_contiguous(m, image+(f.offset+i*f.stride-o), f.block, d);}
}
