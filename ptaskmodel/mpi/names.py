"""Names of the network models of a replay, for the command line: it imports little."""

from ptaskmodel.engine.usage.network_models import NETWORK_MODELS

SMPI = "SMPI"
MODELS = (SMPI, *NETWORK_MODELS)
