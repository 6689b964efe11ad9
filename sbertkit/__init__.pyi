"""The public names: the one list of them, from which they are loaded on first use."""

# ruff: noqa: I001 - which would give each name a statement of its own

from .data import (
    Document as Document,
    ReadOptions as ReadOptions,
)
from .data.ranking import (
    RankingPair as RankingPair,
    RankingSet as RankingSet,
)
from .encoder import (
    Encoded as Encoded,
    Encoder as Encoder,
    EncodeReport as EncodeReport,
    encode_corpus as encode_corpus,
)
from .encoder.catalog import (
    KnownModel as KnownModel,
    known_models as known_models,
)
from .errors import (
    BadFilter as BadFilter,
    DamagedIndex as DamagedIndex,
    InputError as InputError,
    InputTypeError as InputTypeError,
    MissingDependency as MissingDependency,
    MissingFile as MissingFile,
    ModelMismatch as ModelMismatch,
    NewerFormat as NewerFormat,
    OlderFormat as OlderFormat,
    SbertkitError as SbertkitError,
    StorageError as StorageError,
    TrainingStopped as TrainingStopped,
    UnknownId as UnknownId,
)
from .evaluation import (
    Comparison as Comparison,
    Diagnosis as Diagnosis,
    EncoderComparison as EncoderComparison,
    IndexResult as IndexResult,
    IsotropyResult as IsotropyResult,
    ModelCost as ModelCost,
    MtebResult as MtebResult,
    RetrievalResult as RetrievalResult,
    StsResult as StsResult,
    Suite as Suite,
    SuiteResult as SuiteResult,
    compare_encoders as compare_encoders,
    compare_results as compare_results,
    compare_runs as compare_runs,
    diagnose as diagnose,
    evaluate_index as evaluate_index,
    evaluate_isotropy as evaluate_isotropy,
    evaluate_mteb as evaluate_mteb,
    evaluate_retrieval as evaluate_retrieval,
    evaluate_run as evaluate_run,
    evaluate_sts as evaluate_sts,
    measure_models as measure_models,
    read_suite as read_suite,
    run_suite as run_suite,
)
from .lexical.matcher import (
    Match as Match,
    Matcher as Matcher,
)
from .lexical.options import (
    LexicalOptions as LexicalOptions,
)
from .pipeline import (
    RecipeConfig as RecipeConfig,
    RecipeResult as RecipeResult,
    ScoredEncoder as ScoredEncoder,
    run_recipe as run_recipe,
)
from .reranking import (
    Ranked as Ranked,
    Reranker as Reranker,
    Scored as Scored,
)
from .retrieval import (
    BuildOptions as BuildOptions,
    Changes as Changes,
    FieldInfo as FieldInfo,
    Fusion as Fusion,
    Hit as Hit,
    IndexInfo as IndexInfo,
    LexicalInfo as LexicalInfo,
    Passage as Passage,
    Problem as Problem,
    Repair as Repair,
    SearchIndex as SearchIndex,
    Stage as Stage,
)
from .training.classifier import (
    ClassifiedPair as ClassifiedPair,
    classify_pairs as classify_pairs,
)
from .training.config import (
    TrainConfig as TrainConfig,
)
from .training.distill import (
    distill as distill,
)
from .training.merging import (
    Merged as Merged,
    merge as merge,
)
from .training.pretraining.adapt import (
    adapt as adapt,
)
from .training.pretraining.config import (
    AdaptConfig as AdaptConfig,
)
from .training.pretraining.from_scratch import (
    FromScratch as FromScratch,
)
from .training.pretraining.tasks import (
    DeletedWords as DeletedWords,
    DropoutPairs as DropoutPairs,
    MaskedAutoencoder as MaskedAutoencoder,
    MaskedSpans as MaskedSpans,
    MaskedTokens as MaskedTokens,
    MaskedWords as MaskedWords,
    NextSegment as NextSegment,
    PermutedTokens as PermutedTokens,
    ReplacedTokens as ReplacedTokens,
    SegmentOrder as SegmentOrder,
)
from .training.nli import (
    train_nli as train_nli,
)
from .training.mining import (
    Mining as Mining,
)
from .training.multi import (
    TrainingSet as TrainingSet,
    train_multi as train_multi,
)
from .training.objectives import (
    Angle as Angle,
    BinaryCrossEntropy as BinaryCrossEntropy,
    Contrastive as Contrastive,
    Cosent as Cosent,
    Cosine as Cosine,
    MarginMse as MarginMse,
    Softmax as Softmax,
    TeacherScores as TeacherScores,
    TeacherVectors as TeacherVectors,
    Triplet as Triplet,
)
from .training.pairs import (
    train_pairs as train_pairs,
)
from .training.reranker import (
    train_reranker as train_reranker,
)
from .training.results import (
    Quality as Quality,
    TrainResult as TrainResult,
)
from .training.sts import (
    train_sts as train_sts,
)

__all__: list[str]
__version__: str
