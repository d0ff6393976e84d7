"""Lines that are longer than a chunk of the log."""

import pytest
from log_writing import LogWriter

from torchx_tui.logs.source.chunks import ChunkIndex
from torchx_tui.logs.source.file_source import FileSource
from torchx_tui.logs.source.log_file import LogFile

PIECE = b"x" * 65536


class CountingFile(LogFile):
    """A file that counts the bytes that are read."""

    count = 0

    def read(self, start, size):
        data = super().read(start, size)
        self.count += len(data)
        return data


@pytest.mark.parametrize("end", [b"", b"\n", b"\nlast\n"])
def test_line_of_many_chunks_is_read_once(tmp_path, end):
    writer = LogWriter(tmp_path)
    for piece in (b"first\nstart of ", *[PIECE] * 200, end):
        writer.write(piece)
    assert writer.log.combined is not None
    assert writer.log.index is not None
    file = CountingFile(writer.log.combined)
    source = FileSource(file, 0, ChunkIndex(LogFile(writer.log.index)), "oec")
    segments = list(source.open())
    size = writer.log.combined.stat().st_size
    assert sum(segment.lines for segment in segments) == 2 + (b"last" in end)
    long_end = size - len(end.partition(b"\n")[2])
    assert [(segment.start, segment.end) for segment in segments][-2:] == [(6, long_end), (0, 6)]
    assert file.count < 2 * size
