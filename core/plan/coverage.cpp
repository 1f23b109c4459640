#include "core/plan/coverage.hpp"
namespace forebay {
Coverage coverage(std::span<const TiledPart> parts, Extent w){ std::vector<bool> bits(w.length); for(auto&p:parts){ TreeCursor c(*p.tree); c.seek_data(p.data_start); Run r; while(c.next(p.data_end, w.end(), r)) for(int64_t i=0;i<r.count;++i) for(Bytes b=0;b<r.block;++b){Bytes at=r.offset+i*r.stride+b; if(at>=w.offset) bits[at-w.offset]=true;} }
 Coverage cv{}; Bytes i=0; while(i<w.length){ if(!bits[i]){++i;continue;} Bytes j=i; while(j<w.length&&bits[j])++j; cv.extents.push_back({w.offset+i,j-i}); cv.covered+=j-i; i=j;} cv.dense=cv.covered==w.length; return cv;}
}
