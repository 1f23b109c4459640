// Reads a file as Java programs do: as a stream, into several buffers, at a place of its own, and by a
// mapping. Tells where that ended and a checksum of all.
//
// usage: java Reads FILE

import java.io.*;
import java.nio.*;
import java.nio.channels.*;
import java.nio.file.*;
import java.util.zip.CRC32;

class Reads {
    public static void main(String[] arguments) throws IOException {
        CRC32 sum = new CRC32();
        byte[] bytes = new byte[70_001];
        try (InputStream stream = new FileInputStream(arguments[0])) {
            for (int count; (count = stream.read(bytes)) > 0;) sum.update(bytes, 0, count);
        }
        try (FileChannel channel = FileChannel.open(Path.of(arguments[0]))) {
            ByteBuffer[] pieces = {ByteBuffer.allocateDirect(10_000), ByteBuffer.allocate(33_333)};
            while (channel.read(pieces) > 0) {
                for (ByteBuffer piece : pieces) sum.update(piece.flip());
                for (ByteBuffer piece : pieces) piece.clear();
            }
            ByteBuffer last = ByteBuffer.allocateDirect(5_000);
            channel.read(last, channel.size() - 4_000);
            sum.update(last.flip());
            System.out.println(channel.position() + " " + sum.getValue());
            sum.update(channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size()));
        }
        System.out.println(sum.getValue());
    }
}
