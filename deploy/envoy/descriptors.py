"""Write the API's descriptors for Envoy, which turns JSON into messages by them.

    python deploy/envoy/descriptors.py [FILE]

Without FILE they go beside envoy.yaml. They come from the installed stubs, and with them those of
the details that errors carry: what Envoy has no descriptor of, it cannot show as JSON.
"""

import sys
from pathlib import Path

from bytepair.v1 import chat_pb2, tokenizer_pb2
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]

BESIDE = Path(__file__).resolve().parent / "bytepair.binpb"
ROOTS = tuple(
    module.DESCRIPTOR for module in (tokenizer_pb2, chat_pb2, error_details_pb2, status_pb2)
)


def descriptors() -> FileDescriptorSet:
    """Return every file that the API needs, each after those that it imports."""
    found = FileDescriptorSet()
    seen: set[str] = set()

    def add(file: FileDescriptor) -> None:
        if file.name in seen:
            return
        seen.add(file.name)
        for imported in file.dependencies:
            add(imported)
        file.CopyToProto(found.file.add())

    for root in ROOTS:
        add(root)
    return found


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else BESIDE
    path.write_bytes(descriptors().SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
