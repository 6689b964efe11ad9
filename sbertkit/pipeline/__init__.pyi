"""The public names of the pipeline."""

from .config import RecipeConfig as RecipeConfig
from .recipe import run_recipe as run_recipe
from .results import RecipeResult as RecipeResult
from .results import ScoredEncoder as ScoredEncoder
