"""Names of the network models that a replay knows."""

from ptaskmodel.core.patterns.network_models import NETWORK_MODELS

SMPI = "SMPI"
MODELS = (SMPI, *NETWORK_MODELS)
